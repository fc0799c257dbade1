"""The folders that a client names for a session: `cwd`, where it works, and others that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from accord.errors import RequestError


def checked_folders(cwd: str, additional: Sequence[str] = ()) -> tuple[Path, ...]:
    """`cwd` and the additional directories; RequestError where one is not an absolute path."""
    others = (absolute(path, f"$.additionalDirectories[{place}]") for place, path in enumerate(additional))
    return (absolute(cwd, "$.cwd"), *others)


def absolute(path: str, place: str) -> Path:
    """A folder, named at this place of a request."""
    # session-setup, Working Directory and Additional Workspace Roots: each "MUST be an absolute path".
    if not Path(path).is_absolute():
        raise RequestError.invalid_params("an absolute path is needed", path=place)
    if "\0" in path or not _is_text(path):
        raise RequestError.invalid_params("no path is like this", path=place)
    return Path(path)


def _is_text(path: str) -> bool:
    # Half a surrogate pair would become a stray byte of the folder's name.
    return not any("\ud800" <= character <= "\udfff" for character in path)
