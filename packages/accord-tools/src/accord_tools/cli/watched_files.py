"""`WatchedFiles`: the Python files of a program, for commands that load it again when one of them changes.

Changes are found by checking the times and sizes of the files, a few times a second: a project has some hundred files,
and checking them takes about a millisecond. A package with notifications of the system would save that, but need an
extra and a thread.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from accord.agent_file import split
from accord_tools.cli.exit_codes import WrongUsage

EVERY = 0.3
"""Seconds between two checks of the files."""
MOST_FOLDERS = 500
_SKIPPED = ("__pycache__", "node_modules", "site-packages")


class WatchedFiles:
    """The Python files in a folder and below it, but for hidden folders and installed packages."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._times()

    @classmethod
    def of(cls, written: str) -> WatchedFiles:
        """The files of `FILE.py`, of a module, or of either with a name; raises WrongUsage if it does not exist."""
        place, _ = split(written)
        if (file := Path(place)).is_file():
            return cls(file.absolute().parent)
        if not place.endswith(".py") and all(map(str.isidentifier, place.split("."))):
            parts = place.split(".")
            for folder in (Path.cwd(), *map(Path, sys.path)):
                module = folder.joinpath(*parts)
                if module.with_suffix(".py").is_file() or module.is_dir():
                    return cls(folder / parts[0] if len(parts) > 1 or module.is_dir() else folder)
            raise WrongUsage(f"no module {place}: neither this folder nor Python's path has it")
        raise WrongUsage(f"file not found: {place}")

    def take_changes(self) -> list[str]:
        """The paths of the files that were changed, added or removed since the last call."""
        before, self._seen = self._seen, self._times()
        return sorted({path for path, _ in before.items() ^ self._seen.items()})

    @property
    def have_changed(self) -> bool:
        """Whether a file differs from the last call of `take_changes`."""
        return self._times() != self._seen

    async def change(self) -> None:
        """Wait until the files have changed."""
        while not await asyncio.to_thread(lambda: self.have_changed):  # noqa: ASYNC110 - files tell of no event
            await asyncio.sleep(EVERY)

    def _times(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        folders = [str(self._folder)]
        for folder in folders:
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".py") and entry.is_file():
                        status = entry.stat()
                        found[entry.path] = (status.st_mtime_ns, status.st_size)
                    elif entry.is_dir(follow_symlinks=False) and _is_searched(entry) and len(folders) < MOST_FOLDERS:
                        folders.append(entry.path)
        return found


def _is_searched(folder: os.DirEntry[str]) -> bool:
    is_environment = os.path.exists(os.path.join(folder.path, "pyvenv.cfg"))  # noqa: PTH110, PTH118
    return not folder.name.startswith(".") and folder.name not in _SKIPPED and not is_environment
