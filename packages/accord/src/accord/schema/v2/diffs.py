"""Diffs: which files changed and how, and a patch to show. Proposal: diff-file-states.

Differs from version 1, which has a file's whole old and new text: `changes` says what happened to which file, also
where no text tells it (a move, a picture); `patch` is for reading, and may be left out.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Open, Tolerant, Unknown, ValidItems, words
from accord.schema.v2 import git_patch
from accord.schema.v2.content import MediaType
from accord.schema.v2.protocol import AbsolutePath

DiffFileType: TypeAlias = Annotated[str, words("text", "binary", "directory", "symlink")]
DiffPatchFormat: TypeAlias = Annotated[str, words("git_patch")]


class DiffPathChange(Model):
    """A change of one file; type and MIME type are those after it (of a deleted file: before it)."""

    path: AbsolutePath
    file_type: Tolerant[DiffFileType | None] = None
    mime_type: Tolerant[MediaType | None] = None


class DiffAdd(DiffPathChange, tag_field="operation", tag="add"):
    """A file that was created."""


class DiffDelete(DiffPathChange, tag_field="operation", tag="delete"):
    """A file that was deleted."""


class DiffModify(DiffPathChange, tag_field="operation", tag="modify"):
    """A file whose contents changed."""


class DiffPathPairChange(Model):
    """A change from one path to another."""

    old_path: AbsolutePath
    path: AbsolutePath
    file_type: Tolerant[DiffFileType | None] = None
    mime_type: Tolerant[MediaType | None] = None


class DiffMove(DiffPathPairChange, tag_field="operation", tag="move"):
    """A file that was moved."""


class DiffCopy(DiffPathPairChange, tag_field="operation", tag="copy"):
    """A file that was copied."""


DiffChange: TypeAlias = Open[DiffAdd | DiffDelete | DiffModify | DiffMove | DiffCopy]


class DiffPatch(Model):
    """The changes as text for people."""

    format: DiffPatchFormat
    text: str


class Diff(Model, tag_field="type", tag="diff"):
    """Changed files: `changes` is authoritative, `patch` shows some or all of it."""

    changes: ValidItems[DiffChange]
    patch: Tolerant[DiffPatch | None] = None

    @classmethod
    def of(cls, path: AbsolutePath, new_text: str, old_text: str | None = None) -> Diff:
        """The diff of one text file: its whole text before (None for a new file) and after."""
        change = DiffAdd(path, "text") if old_text is None else DiffModify(path, "text")
        return cls([change], DiffPatch("git_patch", git_patch.write(path, old_text, new_text)))

    @property
    def summary(self) -> list[str]:
        """What happened to each file, a line each; for a diff without a patch.

        >>> Diff([DiffAdd("/a"), DiffMove("/b", "/c")]).summary
        ['added /a', 'moved /b to /c']
        """
        return [_line(change) for change in self.changes]


def _line(change: DiffChange) -> str:
    if isinstance(change, Unknown):
        return change.tag
    done = _DONE[type(change)]
    if isinstance(change, DiffPathPairChange):
        return f"{done} {change.old_path} to {change.path}"
    return f"{done} {change.path}"


_DONE: dict[type, str] = {
    DiffAdd: "added",
    DiffDelete: "deleted",
    DiffModify: "modified",
    DiffMove: "moved",
    DiffCopy: "copied",
}
