"""The subject of a permission request: the files and the command of its tool call, within bounds.

The agent chooses how many files a tool call names and how long its command is, and rules look at all of it. So each
has a bound, far above what a user could judge. A request above a bound is refused before any work is done for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from accord.errors import RequestError
from accord.project.roots import LONGEST, is_unicode
from accord.schema import v1
from accord.session import ToolCallState

FILES = 1000
"""Files that one permission request may name."""

LONGEST_NAME = 255
"""Bytes of one name in a path: the limit of Linux, macOS and Windows."""

LONGEST_TEXT = 128 * 1024
"""Bytes of a command or a title: the limit of Linux for a shell line."""

OPTIONS = 100
"""Answers that one permission request may offer."""


def must_be_judgeable(tool_call: ToolCallState, options: Sequence[v1.PermissionOption]) -> None:
    """Raise RequestError (-32602) for a request above a bound."""
    if len(options) > OPTIONS:
        raise _too_much("options", len(options), OPTIONS, "offer fewer")
    files = len(tool_call.locations) + sum(
        isinstance(part, v1.Diff) or len(list(_changed(part))) for part in tool_call.content
    )
    if files > FILES:
        raise _too_much("files", files, FILES, "ask about fewer files at once")
    for path in _named(tool_call):
        _must_be_a_path(path)
    for what, size in (
        ("bytes of the title", _size(tool_call.title)),
        ("bytes of the command", _command_size(tool_call)),
    ):
        if size > LONGEST_TEXT:
            raise _too_much(what, size, LONGEST_TEXT, "shorten it, for instance by a script in a file")


def paths_of(tool_call: ToolCallState, cwd: Path) -> tuple[Path, ...]:
    """The files that a tool call names, by their real paths."""
    folders: dict[str, str] = {}
    return tuple(dict.fromkeys(Path(_real(os.path.join(cwd, path), folders)) for path in _named(tool_call)))  # noqa: PTH118


def command_of(tool_call: ToolCallState) -> str | Sequence[str] | None:
    """The command of a tool call: a shell line, or a program and its arguments."""
    words = _words(tool_call)
    if isinstance(words, str):
        return words
    if words is not None:
        return [str(word) for word in words]
    return tool_call.title.strip("` ") or None if tool_call.kind == "execute" else None


def _words(tool_call: ToolCallState) -> str | list[Any] | None:
    given: Any = tool_call.raw_input
    if not isinstance(given, Mapping):
        return None
    fields = cast("Mapping[str, Any]", given)
    command = fields.get("command", fields.get("cmd"))
    if isinstance(command, str) and command:
        arguments = fields.get("args")
        return [command, *cast("list[Any]", arguments)] if isinstance(arguments, list) else command
    return cast("list[Any]", command) if isinstance(command, list) and command else None


def _command_size(tool_call: ToolCallState) -> int:
    words = _words(tool_call)
    if words is None or isinstance(words, str):
        return _size(words or "")
    return sum(1 + (_size(word) if isinstance(word, str) else len(repr(word))) for word in words)


def _named(tool_call: ToolCallState) -> Iterator[str]:
    for location in tool_call.locations:
        yield location.path
    for part in tool_call.content:
        if isinstance(part, v1.Diff):
            yield part.path
        else:
            yield from _changed(part)


def _changed(part: object) -> Iterator[str]:
    """The files that a diff of version 2 names; none for anything else."""
    changes: Sequence[object] = getattr(part, "changes", ())
    for change in changes:
        for name in ("old_path", "path"):
            if isinstance(path := getattr(change, name, None), str):
                yield path


def _must_be_a_path(path: str) -> None:
    if len(path) > LONGEST or _size(path) > LONGEST:
        raise _too_much("bytes of a path", _size(path), LONGEST, "name a shorter one", path=path[:200])
    if "\0" in path or not is_unicode(path):
        raise RequestError.invalid_params("path must be valid Unicode without null bytes", path=ascii(path)[:200])
    if len(path) > LONGEST_NAME and (longest := max(map(_size, path.split("/")))) > LONGEST_NAME:
        raise _too_much("bytes of a name in a path", longest, LONGEST_NAME, "name a shorter one", path=path[:200])


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _too_much(what: str, given: int, allowed: int, remedy: str, **data: str) -> RequestError:
    return RequestError.invalid_params(
        f"too many {what} in a permission request: {given}, at most {allowed} are allowed; {remedy}", **data
    )


def _real(path: str, folders: dict[str, str]) -> str:
    """Like `os.path.realpath`, but resolves a folder once for all of its files."""
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    real = os.path.join(folders[folder], name)  # noqa: PTH118
    return os.path.realpath(real) if os.path.islink(real) else real  # noqa: PTH114
