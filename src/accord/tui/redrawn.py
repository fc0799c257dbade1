"""`Redrawn`: a widget whose changes are drawn again, because Textual loses redraws.

What is laid out or painted while widgets are mounted in a batch counts as drawn, but never reaches the terminal; and
what changes meanwhile is drawn at the next event after the batch, which may not come while nobody types.
"""

from __future__ import annotations

from typing import Self

from textual.geometry import Region
from textual.widget import Widget

TIMES = 2
"""How often a change is drawn again: the first time may be lost in the same batch."""


class Redrawn(Widget):
    """A widget that `draw_again` draws again, if it has changed lately."""

    _owed = 0

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        self._owed = TIMES
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def draw_again(self) -> None:
        """Draw it again; does nothing if it was drawn often enough since it has changed."""
        if self._owed:
            self._owed -= 1
            super().refresh()
