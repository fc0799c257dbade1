"""Styled text as rows of a given width, and text in chunks, wrapped as it arrives. PURE.

    Paragraph (spans, how its rows begin) ──▶ rows_of(paragraph, width) ──▶ rows of spans

A span is a text and the *name* of a style: the terminal's appearance or the chat's theme decides its colour. The code
that paints the rows passes the function that measures them (`Measure`): a row that a terminal library takes to be
narrower than it is would displace its neighbours.

A terminal breaks a long line in the middle of a word. In a `WrappedStream` a word waits until it is whole, and begins a
new row if it does not fit. A row that continues an item of a list begins below the item's text. Code is not changed:
lines between fences, lines that are indented by four blanks, and tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from accord.printable import CUT, columns, printable

Span: TypeAlias = tuple[str, str]
"""A text and the names of its styles, separated by blanks."""

Row: TypeAlias = tuple[Span, ...]
"""The contents of one row of the screen."""

Measure: TypeAlias = Callable[[str], int]
"""Returns how many columns a text takes."""

Wrap = Literal["words", "groups", "fold", "cut", "crop", "whole"]
"""How a paragraph that is too long continues: broken between words, broken only at spans of blanks, broken anywhere,
cut off with a sign, cut off without one, because code may end with it, or whole, so that a command can be copied.
"""

TAB = 4
LONGEST_LINE = 20_000
"""Characters of one line that are shown; the rest is counted."""
TOTAL, LATER = 50_000, 200
"""Characters of one text after which its lines are cut, and characters of each of those that are shown."""

_WORDS = re.compile(r" *[^ ]+ *")


class Cell(NamedTuple):
    """A cell of a table's row."""

    spans: Sequence[Span]
    align: str = ""
    """The side to which its text is aligned: `right` or `center`, else the left."""

    def padded(self, row: Row, width: int, measure: Measure) -> Row:
        """Return one row of its text in this many columns."""
        gap = width - sum(measure(text) for text, _ in row)
        if gap <= 0:
            return row
        before = gap if self.align == "right" else gap // 2 if self.align == "center" else 0
        sides = [((" " * blanks, ""),) if blanks else () for blanks in (before, gap - before)]
        return (*sides[0], *row, *sides[1])


class TableRow(NamedTuple):
    """The cells of a row, and the preferred widths of the table's columns."""

    cells: Sequence[Cell]
    widths: tuple[int, ...]


GAP, NARROWEST = 2, 4
"""Columns between those of a table, and the minimum width of a column."""


class Paragraph(NamedTuple):
    """A line of text before it is broken into rows."""

    spans: Sequence[Span] = ()
    first: Row = ()
    """The text at the start of its first row."""
    rest: Row = ()
    """The text at the start of its other rows."""
    wrap: Wrap = "words"
    fill: str = ""
    """The style that a row has up to its end, as the background of code."""
    is_passing: bool = False
    """Whether it only reports a beginning."""
    table: TableRow | None = None
    """Its cells, which are wrapped in their columns if the row of the table is too long."""

    @property
    def text(self) -> str:
        """Return the text without styles and without the prefixes of its rows."""
        return "".join(text for text, _ in self.spans)

    def under(self, first: Row, rest: Row | None = None) -> Paragraph:
        """Return the same with a longer prefix before each row."""
        return self._replace(first=(*first, *self.first), rest=(*(first if rest is None else rest), *self.rest))


def plain(text: str, style: str = "", *, wrap: Wrap = "words") -> list[Paragraph]:
    """The lines of a text of a peer, made safe for the terminal."""
    return [Paragraph([(line, style)] if line else [], wrap=wrap) for line in clean_lines(text)]


def clean(text: str) -> str:
    """A text of a peer on one line, made safe for the terminal."""
    return " ".join(printable(text[:LONGEST_LINE]).split())


def clean_lines(text: str) -> Iterator[str]:
    """Return the lines of a peer's text, made safe for the terminal, without tabs; the end of a long one is counted."""
    left = TOTAL
    for line in text.split("\n"):
        yield printed(line, LONGEST_LINE if left > 0 else LATER)
        left -= min(len(line), LONGEST_LINE)


def printed(line: str, most: int = LONGEST_LINE) -> str:
    """Return a line of a peer, made safe for the terminal, and no longer than a reader can use."""
    more = len(line) - most
    shown = printable(line[:most]).expandtabs(TAB)
    return shown if more <= 0 else f"{shown}{CUT} ({more:,} more characters)"


def rows_of(paragraph: Paragraph, width: int, measure: Measure = columns) -> list[Row]:
    """The rows of a paragraph, each at most `width` columns wide."""
    first, rest = (sum(measure(text) for text, _ in row) for row in (paragraph.first, paragraph.rest))
    if max(first, rest) >= width - 3:  # no room is left beside the prefix of the rows
        paragraph, first, rest = paragraph._replace(first=(), rest=()), 0, 0
    plain_text = paragraph.text
    if paragraph.wrap == "whole" or (len(plain_text) <= 8 * width and first + measure(plain_text) <= width):
        return [(*paragraph.first, *paragraph.spans)]
    if paragraph.table is not None and (widths := _fitted(paragraph.table.widths, width - first)) is not None:
        return [(*paragraph.first, *row) for row in _table_rows(paragraph.table.cells, widths, measure)]
    if paragraph.wrap in ("cut", "crop"):
        sign: Row = ((CUT, "dim"),) if paragraph.wrap == "cut" else ()
        kept = _fitting(plain_text, max(1, width - first - len(sign)), measure)
        return [(*paragraph.first, *_between(paragraph.spans, 0, kept), *sign)]
    rows: list[Row] = []
    spans, place = list(reversed(paragraph.spans)), 0
    for start, end in _breaks(paragraph, max(1, width - first), max(1, width - rest), measure):
        row = list(paragraph.rest if rows else paragraph.first)
        while spans and place < end:  # each span is visited once, and once more for each row on which it continues
            text, style = spans.pop()
            if part := text[max(0, start - place) : end - place]:
                row.append((part, style))
            if place + len(text) > end:
                spans.append((text[end - place :], style))
                place = end
            else:
                place += len(text)
        rows.append(tuple(row))
    return rows


@lru_cache(maxsize=64)
def _fitted(widths: tuple[int, ...], width: int) -> tuple[int, ...] | None:
    """Return the widths of the columns of a table in this many columns: narrow ones keep theirs, the others share the
    rest.

    >>> _fitted((4, 50, 90), 54), _fitted((4, 5), 54), _fitted((9, 9), 5)
    ((4, 23, 23), (4, 5), None)
    """
    left, shared = width - GAP * (len(widths) - 1), sorted(range(len(widths)), key=lambda place: widths[place])
    if left < NARROWEST * len(widths):
        return None
    fitted = list(widths)
    for number, place in enumerate(shared):
        fitted[place] = min(widths[place], left // (len(shared) - number))
        left -= fitted[place]
    return tuple(fitted)


def _table_rows(cells: Sequence[Cell], widths: Sequence[int], measure: Measure) -> Iterator[Row]:
    """A row of a table, each cell wrapped in its column."""
    wrapped = [
        rows_of(Paragraph(cell.spans), max(1, width), measure) for cell, width in zip(cells, widths, strict=False)
    ]
    for line in range(max(map(len, wrapped), default=0)):
        row: list[Span] = []
        for place, (cell, rows) in enumerate(zip(cells, wrapped, strict=False)):
            row += [(" " * GAP, "")] if place else []
            row += cell.padded(rows[line] if line < len(rows) else (), widths[place], measure)
        yield tuple(row)


def text_of(row: Row) -> str:
    """A row without styles."""
    return "".join(text for text, _ in row)


def _pieces(paragraph: Paragraph, text: str) -> list[tuple[int, int]]:
    """The pieces of a text that stay together while they fit into a row."""
    if paragraph.wrap == "words":
        return [(it.start(), it.end()) for it in _WORDS.finditer(text)]
    if paragraph.wrap == "fold":
        return [(0, len(text))]
    pieces, begin, place = list[tuple[int, int]](), 0, 0
    for span, _ in paragraph.spans:
        place += len(span)
        if span.isspace():
            pieces.append((begin, place))
            begin = place
    return [*pieces, (begin, place)]


def _breaks(paragraph: Paragraph, first: int, rest: int, measure: Measure) -> Iterator[tuple[int, int]]:
    """Yield where the rows of a paragraph begin and end; blanks at a break belong to no row unless it is broken
    anywhere.
    """
    text, by_words = paragraph.text, paragraph.wrap != "fold"
    most, start, used, place = first, 0, 0, 0
    if text.isascii() and paragraph.wrap != "groups":  # as below; a row's last blank is found at once, not word by word
        last = len(text.rstrip(" ")) if by_words else len(text)
        while last - start > most:
            row = text[start : text.rfind(" ", start, start + most + 1) + 1].rstrip(" ") if by_words else ""
            place = start + (len(row) or most)
            yield start, place
            most, start = rest, len(text) - len(text[place:].lstrip(" ")) if row else place
        if start < len(text):
            yield start, len(text)
        return
    for begin, end in _pieces(paragraph, text):
        word = text[begin:end]
        if used and not _fits(word.rstrip(" "), most - used, measure):
            yield start, start + len(text[start:begin].rstrip(" "))
            most, start, used = rest, begin + len(word) - len(word.lstrip(" ")), 0
            word = word.lstrip(" ")
        place = max(begin, start)
        while not _fits(word.rstrip(" ") if by_words else word, most - used, measure):
            kept = max(1, _fitting(word, most - used, measure))
            yield start, place + kept
            most, start, used = rest, place + kept, 0
            place, word = place + kept, word[kept:]
        used += measure(word)
    if start < len(text):
        yield start, len(text)


def _fits(text: str, most: int, measure: Measure) -> bool:
    """Whether a text fits into this many columns; one with as many marks of no width is broken, too."""
    return len(text) <= most if text.isascii() else len(text) <= 8 * most and measure(text) <= most


def _fitting(text: str, most: int, measure: Measure) -> int:
    """Return how many characters of a text fit into this many columns."""
    if text.isascii():
        return min(len(text), most)
    low, high = 0, min(len(text), most * 8)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _between(spans: Sequence[Span], start: int, end: int) -> Iterator[Span]:
    place = 0
    for text, style in spans:
        after = place + len(text)
        if after > start and place < end and (part := text[max(0, start - place) : end - place]):
            yield part, style
        place = after


_ITEM = re.compile(r"[ ]{0,12}(?:[-*+•]|\d{1,3}[.)])[ ]+|[ ]{1,12}")
_CODE = re.compile(r"\t|[ ]{4,}(?![-*+•\d ])|\|")
_FENCES = ("```", "~~~")
_TOKEN = re.compile(r"\n|[ \t]+|[^ \t\n]+")
LONGEST_WORD = 1_000
"""Characters of a word that waits for its end."""
NARROW = 20
"""A narrower terminal breaks lines itself."""


class WrappedStream:
    """Text in chunks, with line breaks at the end of the terminal's rows. `indent` is the prefix of each row.

    >>> text = WrappedStream()
    >>> text.add("- one two three, fo", 22), text.add("ur five", 22), text.rest(22)
    ('- one two three,', ' four', '\\n  five')
    """

    def __init__(self, indent: str = "") -> None:
        self._indent = indent
        self._gap = ""
        """Blanks that are printed with the next word, unless it begins a row."""
        self._word = ""
        self._line = ""
        """The text's own line so far, however many rows it takes."""
        self._column = 0
        self._is_fenced = False

    @property
    def is_at_start(self) -> bool:
        """Whether the cursor is at the start of a row."""
        return self._column == 0

    def add(self, chunk: str, width: int) -> str:
        """Return this chunk in printable form; a word at its end waits for the next chunk."""
        tokens = _TOKEN.findall(self._word + chunk)
        waits = bool(tokens) and len(tokens[-1]) < LONGEST_WORD and not tokens[-1].isspace()
        self._word = tokens.pop() if waits else ""
        return "".join([self._put(token, width) for token in tokens])

    def rest(self, width: int) -> str:
        """The word that still waits."""
        word, self._word = self._word, ""
        return self._put(word, width) if word else ""

    def begin(self, column: int) -> None:
        """Note that something else is at the start of the line."""
        self._column = column

    def end_line(self) -> None:
        """Take note that something else has ended the line."""
        self._gap, self._line, self._column = "", "", 0

    def _put(self, token: str, width: int) -> str:
        if token == "\n":
            self._is_fenced ^= self._line.lstrip().startswith(_FENCES)
            self.end_line()
            return "\n"
        if token.isspace():
            self._gap += token
            return ""
        text, self._gap = self._gap + token, ""
        if self._column == 0:
            text = self._indent + text
        elif self._column + columns(text.expandtabs(4)) > width >= NARROW and not self._is_code():
            item = _ITEM.match(self._line)
            hanging = self._indent + " " * (columns(item.group()) if item is not None else 0)
            self._line += text
            self._column = columns(hanging + token)
            return f"\n{hanging}{token}"
        self._line += text
        self._column += columns(text.expandtabs(4))
        return text

    def _is_code(self) -> bool:
        return self._is_fenced or self._line.lstrip().startswith(_FENCES) or _CODE.match(self._line) is not None
