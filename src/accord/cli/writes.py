"""The files that an agent wrote through us, for a summary at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli.work import Line, Span
from accord.printable import label

if TYPE_CHECKING:
    from accord.services.files.journal import Change

SHOWN = 50
"""Files that the summary names."""
PATH = 300


class Writes:
    """Remembers each written file: as it was before the first write, and as it is after the last."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._sizes: dict[Path, tuple[bool, int]] = {}
        """Of each file, whether it is new, and how many bytes it has."""

    def add(self, change: Change) -> None:
        """Take note of a write. For `Files(on_change=...)`."""
        is_new, _ = self._sizes.get(change.path, (change.before is None, 0))
        self._sizes[change.path] = is_new, len(change.after)

    def lines(self) -> Iterator[Line]:
        """One line for each file, after a heading; nothing if no file was written."""
        if not self._sizes:
            return
        number = len(self._sizes)
        yield Line([Span(f"{number:,} file{'' if number == 1 else 's'} written", "bold")])
        for path, (is_new, size) in list(self._sizes.items())[:SHOWN]:
            shown = path.relative_to(self._folder) if path.is_relative_to(self._folder) else path
            about = f"  {'new, ' if is_new else ''}{size:,} bytes"
            yield Line([Span(label(str(shown), PATH)), Span(about, "dim")], indent=2)
        if number > SHOWN:
            yield Line([Span(f"and {number - SHOWN:,} more", "dim")], indent=2)
