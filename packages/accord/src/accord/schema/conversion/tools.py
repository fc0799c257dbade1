"""Tool calls and their diffs."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from accord.schema import v1, v2
from accord.schema.conversion.carrying import Several
from accord.schema.conversion.rows import DOWN, UP
from accord.schema.v2 import git_patch

# tool-call-updates: in version 2 one upsert begins and changes a tool call


@UP.step(v1.ToolCall)
def _tool_call_up(value: v1.ToolCall) -> Any:
    return UP.carry(
        value,
        v2.ToolCallProgress,
        content=UP.one(value.content) or UNSET,
        locations=UP.one(value.locations) or UNSET,
    )


@DOWN.step(v2.ToolCallUpdate, v2.ToolCallProgress)
def _tool_call_down(value: v2.ToolCallUpdate) -> Any:
    if value.kind is None:
        value = replace(value, kind="other")  # the value that clearing it sets
    if value.status is None:
        value = replace(value, status="pending")
    return DOWN.carry(value, getattr(v1, type(value).__name__))


# diff-file-states: version 1 has a file's whole text before and after, version 2 a list of changes and a patch


@UP.step(v1.Diff)
def _diff_up(value: v1.Diff) -> v2.Diff:
    if value.deleted:
        return _deletion_up(value)
    change = v2.DiffModify if value.old_text is not None else v2.DiffAdd
    patch = git_patch.write(value.path, value.old_text, value.new_text, context=None)
    return v2.Diff([change(value.path, "text")], v2.DiffPatch("git_patch", patch), meta=value.meta)


def _deletion_up(value: v1.Diff) -> v2.Diff:
    if value.new_text:
        UP.refuse("Diff", "a deleted file has no text after")
    text = value.old_text
    patch = None if text is None else v2.DiffPatch("git_patch", git_patch.write(value.path, text, None, context=None))
    return v2.Diff([v2.DiffDelete(value.path, "text")], patch, meta=value.meta)


@DOWN.step(v2.Diff)
def _diff_down(value: v2.Diff) -> Several:
    if not value.changes:
        DOWN.refuse("Diff", "it has no changes")
    if value.patch is None and all(isinstance(change, v2.DiffDelete) for change in value.changes):
        return Several(_diff_of(change, [], value) for change in value.changes)
    if value.patch is None or value.patch.format != "git_patch" or value.patch.meta is not None:
        DOWN.refuse("Diff", "it needs the whole texts of the files, which only a git patch without _meta gives")
    try:
        files = git_patch.read(value.patch.text)
    except ValueError as error:
        DOWN.refuse("Diff.patch", str(error))
    return Several(_diff_of(change, files, value) for change in value.changes)


def _diff_of(change: v2.DiffChange, files: list[git_patch.FileTexts], diff: v2.Diff) -> v1.Diff:
    what = type(change).__name__
    if not isinstance(change, v2.DiffAdd | v2.DiffDelete | v2.DiffModify) or change.meta is not None:
        DOWN.refuse(what, "only an added, modified or deleted file, without _meta, can be a diff")
    if change.file_type not in (None, "text"):
        DOWN.refuse(what, f"a diff must be of a text file, got {change.file_type!r}")
    if diff.patch is None:
        return v1.Diff(change.path, "", deleted=True, meta=diff.meta)
    meant = files if len(files) == len(diff.changes) == 1 else [file for file in files if file.may_be(change.path)]
    if len(meant) != 1:
        DOWN.refuse(what, "the patch must have this file once")
    [file] = meant
    shown = (file.old is not None, file.new is not None)
    if shown != (not isinstance(change, v2.DiffAdd), not isinstance(change, v2.DiffDelete)):
        DOWN.refuse(what, "the patch has a different change of this file")
    return v1.Diff(change.path, file.new or "", file.old, deleted=file.new is None, meta=diff.meta)
