"""The folders that a client names for a session, `cwd` and others, and how files are named to the client."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from accord.errors import RequestError
from accord.project.roots import is_unicode
from accord.schema import v1

Call = TypeVar("Call", bound="v1.ToolCall | v1.ToolCallUpdate")


def checked_folders(cwd: str, additional: Sequence[str] = ()) -> tuple[Path, ...]:
    """`cwd` and the additional directories; RequestError where one is not an absolute path."""
    others = (absolute(path, f"$.additionalDirectories[{place}]") for place, path in enumerate(additional))
    return (absolute(cwd, "$.cwd"), *others)


def absolute(path: str, place: str) -> Path:
    """A folder, named at this place of a request."""
    # session-setup, Working Directory and Additional Workspace Roots: each "MUST be an absolute path".
    if not Path(path).is_absolute():
        raise RequestError.invalid_params(f"path must be absolute, got {path[:80]!r}", path=place)
    if "\0" in path or not is_unicode(path):
        raise RequestError.invalid_params("path contains a null byte or half a surrogate pair", path=place)
    return Path(path)


def with_absolute_paths(call: Call, cwd: Path) -> Call:
    """What is told of a tool call, its relative paths as they are meant: from `cwd` on."""
    # overview, Argument requirements: every path is absolute.
    content: Sequence[Any] = call.content or ()
    locations: Sequence[v1.ToolCallLocation] = call.locations or ()
    paths = [it.path for it in _diffs(content)] + [it.path for it in locations]
    if all(map(os.path.isabs, paths)):
        return call
    changed: dict[str, Any] = {}
    if content:
        changed["content"] = [_from(cwd, it) if isinstance(it, v1.Diff) else it for it in content]
    if locations:
        changed["locations"] = [_from(cwd, it) for it in locations]
    return msgspec.structs.replace(call, **changed)


def _diffs(content: Sequence[Any]) -> list[v1.Diff]:
    return [it for it in content if isinstance(it, v1.Diff)]


def _from(cwd: Path, place: Any) -> Any:
    return msgspec.structs.replace(place, path=str(cwd / place.path))


def check_line(line: int | None) -> None:
    """ValueError for a line that no file has."""
    # overview, Argument requirements: the first line is line 1.
    if line is not None and line < 1:
        raise ValueError(f"line must be at least 1, got {line}")
