"""`Block`: a part of the transcript that is drawn by itself: one message, one tool call, one note.

A block keeps the strips that it was drawn as, for one width and one look. Only a block that has changed is drawn again,
and one that was never seen is not drawn at all: its height is estimated until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from textual.strip import Strip

from accord.session import Entry
from accord_tools.presentation.styled_text import Paragraph, Row, clean, plain
from accord_tools.tui.palette import Palette, all_rows
from accord_tools.tui.picture_strips import Pictures, PictureStrip


@dataclass(frozen=True)
class TerminalView:
    """A terminal as it stands now, whoever runs its command."""

    text: str
    """The output so far."""
    ending: str | None
    """How the command ended, in words; None while it runs."""
    is_good: bool
    """Whether the command has not failed."""
    command: str | None
    """The command, if it is known."""


@dataclass
class Look:
    """How blocks are drawn."""

    palette: Palette
    width: int
    tools_open: bool = False
    """Whether tool calls show all of their output."""
    thoughts_open: bool = False
    """Whether thoughts are shown as a whole."""
    folder: str = ""
    """The session's folder, from which files are named."""
    terminal: Callable[[str], TerminalView | None] = field(default=lambda _: None)
    """Finds a terminal by its id."""
    is_ascii: bool = False
    """Whether the terminal shows ASCII only."""
    pictures: Pictures = field(default_factory=Pictures)
    """The images of the transcript."""


class Block:
    """A part of the transcript."""

    def __init__(self) -> None:
        self.is_open: bool | None = None
        """Whether the user has opened or folded it; None for what is usual."""
        self.is_chosen = False
        """Whether the block cursor is on it."""
        self._strips: list[Strip] | None = None
        self._estimate = 1

    @property
    def gap(self) -> bool:
        """Whether a blank row stands before it."""
        return True

    @property
    def height(self) -> int:
        """How many rows it takes, roughly until it was drawn."""
        return self._estimate if self._strips is None else len(self._strips)

    @property
    def is_drawn(self) -> bool:
        """Whether its strips are known."""
        return self._strips is not None

    @property
    def strips(self) -> Sequence[Strip]:
        """What it was drawn as."""
        return self._strips or ()

    def changed(self) -> None:
        """Have it drawn again; until then it keeps its height."""
        self._estimate = self.height
        self._strips = None

    def resized(self) -> None:
        """Have it drawn again for another width or look."""
        self.changed()

    @property
    def is_partial(self) -> bool:
        """Whether only a part could be drawn at once, so that it is drawn again."""
        return False

    def draw(self, look: Look) -> Sequence[Strip]:
        """Its strips, drawn if they are not known."""
        if self._strips is None:
            strips = self._drawn(look)
            if self.is_chosen:
                strips = [_marked(strip, look) for strip in strips]
            self._strips = [Strip.blank(look.width, look.palette.base), *strips] if self.gap and strips else strips
        return self._strips

    def _drawn(self, look: Look) -> list[Strip]:
        return look.palette.strips(all_rows(self.paragraphs(look), look.width), look.width)

    def content(self, blocks: Sequence[object], look: Look) -> list[Strip]:
        """Content that is not text: words, and images once they are drawn."""
        return look.pictures.strips(blocks, look.width, look.palette, self.changed, is_ascii=look.is_ascii)

    def paragraphs(self, look: Look) -> list[Paragraph]:
        """What it says."""
        raise NotImplementedError

    def update(self, entry: Entry) -> None:
        """Take its entry as it is now."""
        raise NotImplementedError

    def toggle(self, look: Look) -> None:
        """Open it, or fold it."""

    def copied(self) -> str:
        """What copying it gives."""
        return ""

    def estimate(self, characters: int, width: int) -> None:
        """Guess its height before it is drawn."""
        if self._strips is None:
            self._estimate = 2 + characters // max(20, width)


def _marked(strip: Strip, look: Look) -> Strip:
    """A strip of the block that the cursor is on."""
    mark = look.palette.strip((("▌", "accent"),), 1)
    marked = Strip.join([mark, strip.crop(1)])
    return strip.over(marked) if isinstance(strip, PictureStrip) else marked


class NoteBlock(Block):
    """Something that the chat itself says: a notice, an error, how a question was answered."""

    def __init__(self, title: str, text: str = "", style: str = "dim", symbol: str = "•") -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._style = style
        self._symbol = symbol

    def paragraphs(self, look: Look) -> list[Paragraph]:
        first: Row = ((f" {self._symbol} ", self._style),)
        rest: Row = (("   ", ""),)
        shown = [Paragraph([(clean(self._title), self._style)], first, rest)]
        return shown + [it.under(rest) for it in (plain(self._text, "dim") if self._text else ())]

    def copied(self) -> str:
        return f"{self._title}\n{self._text}".strip()
