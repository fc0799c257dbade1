"""The folders of a session: where it works, and what else belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from accord.errors import RequestError


@dataclass(frozen=True, slots=True)
class Roots:
    """A session's folders; `cwd` is the first of them, and the base of relative paths."""

    cwd: Path
    additional: tuple[Path, ...] = ()

    @classmethod
    def checked(cls, cwd: str, additional: Sequence[str] = ()) -> Roots:
        """The folders that a request names; RequestError where they are not absolute paths."""
        others = tuple(_absolute(path, f"$.additionalDirectories[{n}]") for n, path in enumerate(additional))
        return cls(_absolute(cwd, "$.cwd"), others)

    @property
    def all(self) -> tuple[Path, ...]:
        return (self.cwd, *self.additional)

    def resolve(self, path: str | Path) -> str:
        """This path as an absolute one; a relative path starts at `cwd`."""
        return str(self.cwd / path)


def _absolute(path: str, place: str) -> Path:
    # session-setup, Working Directory and Additional Workspace Roots: each "MUST be an absolute path".
    if "\0" in path:
        raise RequestError.invalid_params("a path holds no NUL", path=place)
    if not Path(path).is_absolute():
        raise RequestError.invalid_params("an absolute path is needed", path=place)
    return Path(path)
