"""Markdown as paragraphs, complete or while it grows. PURE.

A growing message is rendered many times a second, so its finished part must not be rendered again. Markdown is cut at
its last top-level block: everything before is final, only the tail is parsed again. A tail that grows without end would
make that quadratic, so it is cut as well: an open code fence line by line, a long list between its items, anything else
at a line's end. The rows after the cut of a table are parsed below its header again. A complete message is parsed in
slices of some lines, so that the screen answers keys in between.

    "# A\n\nSome te" ──▶ final: the heading      tail: the paragraph

The parser never sees HTML: raw HTML is text like any other, because text that is left out hides something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from rich.cells import cell_len

from accord.printable import printable
from accord_tools.presentation.highlight import LONGEST, MOST_LINES, highlighted, highlighted_line
from accord_tools.presentation.styled_text import GAP, TAB, Cell, Paragraph, Row, Span, TableRow, clean, printed

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_CODE: Row = (("  ", "code"),)


class CodeFence(NamedTuple):
    """A code fence that is open."""

    mark: str
    language: str
    start: int
    """Where its lines begin in the source."""

    def is_closed_by(self, line: str) -> bool:
        found = _FENCE.match(line.rstrip())
        return found is not None and not found[2] and found[1][0] == self.mark[0] and len(found[1]) >= len(self.mark)

    def shown(self, line: str) -> Paragraph:
        return code_line(highlighted_line(printed(line), self.language))


def _language(token: Token) -> str:
    return next(iter(token.info.split()), "")


def code_line(spans: Sequence[Span]) -> Paragraph:
    return Paragraph([(text, f"code {style}".strip()) for text, style in spans], _CODE, _CODE, "fold", "code")


MOST_COLUMNS = 30
"""The limit of a table's columns; a wider one is shown as it was written."""
DEEPEST = 18
"""Levels of nested blocks; the parser drops the contents of those deeper than twenty."""
CELL = 200
"""Columns that a cell of a table takes at most."""
MOST_BARS = 100
"""The character `|` in a line; the parser does not look for tables in a text with more, because each cell is
expensive.
"""

MOST_MARKS = 300
"""Characters of one text that may begin emphasis, a link, code or an entity; a text with more is shown as written."""
MARK_WORK = 500_000
"""The squares of those numbers, summed over the text that is parsed at once: the parser takes quadratic time
for them.
"""

MOST_STOPS = 1_000
"""Characters at which the parser stops to look for syntax, in the texts that are parsed at once."""

_MARKS = re.compile(r"[\[\]!*_~`<&\\]")
_STOPS = re.compile(r"[!#$%&*+\-:<=>@\[\\\]^_`{}~]")


@cache
def parser(*, tables: bool = True) -> MarkdownIt:
    """The parser of Markdown."""
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"] if tables else "strikethrough")
    made.disable("reference")  # a definition would be hidden text
    made.core.ruler.at("inline", _parse_inline)
    return made


def _parse_inline(state: StateCore) -> None:
    """Parse the texts within blocks, as long as that is not too dear."""
    left, stops = MARK_WORK, MOST_STOPS
    for token in state.tokens:
        if token.type != "inline" or not token.content:
            continue
        children = token.children = token.children or []
        marks = len(_MARKS.findall(token.content))
        left -= marks * marks
        stops -= len(_STOPS.findall(token.content))
        if marks <= MOST_MARKS and left >= 0 and stops >= 0:
            state.md.inline.parse(token.content, state.md, state.env, children)
            continue
        for number, line in enumerate(token.content.split("\n")):
            children += [Token("softbreak", "br", 0)] if number else []
            children.append(Token("text", "", 0, content=line))


def parsed(text: str) -> list[Sequence[Token]]:
    """The top-level blocks of a text. One that is nested too deeply is a block of plain text: the parser drops it."""
    tokens = parser(tables=all(line.count("|") <= MOST_BARS for line in text.split("\n"))).parse(text)
    if any(token.level >= DEEPEST for token in tokens):
        return [[Token("deep", "", 0, map=[0, text.count("\n")], content=text.rstrip("\n"))]]
    return list(_blocks(tokens))


def _blocks(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The top-level blocks: each token of level 0, with all that it encloses."""
    start = 0
    for place, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            yield tokens[start : place + 1]
            start = place + 1


def rendered(tokens: Sequence[Token]) -> list[Paragraph]:
    """Return one block as paragraphs."""
    opening = tokens[0]
    inside = tokens[1:-1]
    match opening.type:
        case "heading_open":
            style = "heading" if opening.tag in ("h1", "h2") else "bold"
            return _inline(inside[0], style)
        case "paragraph_open":
            return _inline(inside[0])
        case "fence" | "code_block":
            return _code(opening)
        case "bullet_list_open" | "ordered_list_open":
            return _list(opening, inside)
        case "blockquote_open":
            bar: Row = (("│ ", "dim"),)
            return [it.under(bar) for it in _together(inside)]
        case "table_open":
            return _table(_cells(inside), sides=_sides(inside))
        case "hr":
            return [Paragraph([("─" * 24, "dim")], wrap="cut")]
        case _:  # a text of an unknown kind is shown as it was written
            return [Paragraph([(line, "")]) for line in printable(opening.content).split("\n")]


def _together(tokens: Sequence[Token]) -> list[Paragraph]:
    """Return blocks within a block, with blank lines between them."""
    shown: list[Paragraph] = []
    for block in _blocks(_raised(tokens)):
        shown += [Paragraph()] if shown else []
        shown += rendered(block)
    return shown


def _raised(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return these tokens as a document of their own."""
    if tokens and (lowest := min(token.level for token in tokens)):
        return [token.copy(level=token.level - lowest) for token in tokens]
    return tokens


def _code(token: Token) -> list[Paragraph]:
    lines = [printed(line) for line in token.content.removesuffix("\n").split("\n")]
    language = _language(token)
    spans = highlighted(lines, language) or [highlighted_line(line, language) for line in lines]
    return [code_line(line) for line in spans]


def _list(opening: Token, inside: Sequence[Token]) -> list[Paragraph]:
    is_ordered = opening.type == "ordered_list_open"
    number = int(opening.attrs.get("start", 1)) if is_ordered else 0
    is_loose = any(
        token.type == "paragraph_open" and not token.hidden and token.level == opening.level + 2 for token in inside
    )
    shown: list[Paragraph] = []
    for item in _blocks(_raised(inside)):
        mark = f"{number}. " if is_ordered else "• "
        number += 1
        parts: list[Paragraph] = []
        for block in _blocks(_raised(item[1:-1])):
            parts += [Paragraph()] if parts and is_loose else []
            parts += rendered(block)
        blank: Row = ((" " * cell_len(mark), ""),)
        shown += [Paragraph()] if shown and is_loose else []
        parts = parts or [Paragraph()]
        shown.append(parts[0].under(((mark, "accent"),), blank))
        shown += [it.under(blank) for it in parts[1:]]
    return shown


# Text within a block

_STYLES = {"strong": "bold", "em": "italic", "s": "strike", "link": "link"}


def _inline(token: Token, style: str = "") -> list[Paragraph]:
    """The lines of a text with emphasis, links and code in it."""
    lines: list[list[Span]] = [[]]
    styles = [style] if style else []
    links: list[tuple[str, int]] = []
    for child in token.children or ():
        name, _, end = child.type.partition("_")
        if name in _STYLES and end == "open":
            styles.append(_STYLES[name])
            if name == "link":
                links.append((str(child.attrs.get("href", "")), len(lines[-1])))
        elif name in _STYLES and end == "close":
            styles.remove(_STYLES[name])
            if name == "link" and links:
                _show_target(lines[-1], *links.pop())
        elif child.type == "softbreak" or child.type == "hardbreak":
            lines.append([])
        elif child.type == "code_inline":
            lines[-1].append((printable(child.content), " ".join([*styles, "inline"])))
        elif child.type == "image":
            lines[-1].append((f"[image: {clean(child.content)}] {clean(str(child.attrs.get('src', '')))}", "dim"))
        else:
            lines[-1].append((printable(child.content).expandtabs(TAB), " ".join(styles)))
    return [Paragraph(line) for line in lines]


def _show_target(line: list[Span], target: str, start: int) -> None:
    """Show where a link leads, unless its text is the target: a link must not lead elsewhere than it seems."""
    said = "".join(text for text, _ in line[start:])
    if target and clean(target) != said.strip():
        line.append((f" ({clean(target)})", "dim"))


# Tables


_Cells = list[list[Span]]


def _cells(tokens: Sequence[Token]) -> list[_Cells]:
    """Return the rows of a table; the first is its header. The empty cells at the end of the others are dropped."""
    rows: list[_Cells] = []
    empty = 0
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
            empty = 0
        elif token.type == "inline" and not token.content and len(rows) > 1:
            empty += 1
        elif token.type == "inline":
            cell = [span for line in _inline(token) for span in (*line.spans, (" ", ""))][:-1]
            rows[-1] += [*([] for _ in range(empty)), cell]
            empty = 0
    return rows


def _sides(tokens: Sequence[Token]) -> list[str]:
    """Return the side to which each column of a table is aligned."""
    return [str(token.attrs.get("style", "")).rpartition(":")[2] for token in tokens if token.type == "th_open"]


def _table(rows: Sequence[_Cells], widths: Sequence[int] = (), sides: Sequence[str] = ()) -> list[Paragraph]:
    """A table, its columns at least so wide: a line for each row, and one below the header."""
    if not rows or len(rows[0]) > MOST_COLUMNS:
        return [Paragraph([(" | ".join("".join(text for text, _ in cell) for cell in row), "")]) for row in rows]
    widths = tuple(_widths(rows, widths))
    shown: list[Paragraph] = []
    for number, row in enumerate(rows):
        cells: list[Cell] = []
        spans: list[Span] = []
        for place, cell in enumerate(row[: len(widths)]):
            styled = [(text, f"bold {style}".strip()) for text, style in cell] if number == 0 else cell
            cells.append(Cell(styled, sides[place] if place < len(sides) else ""))
            spans += [(" " * GAP, "")] if place else []
            spans += cells[-1].padded(tuple(styled), widths[place], cell_len)
        shown.append(Paragraph(spans, wrap="cut", table=TableRow(cells, widths)))
        if number == 0:
            shown.append(Paragraph([("─" * (sum(widths) + GAP * (len(widths) - 1)), "dim")], wrap="crop"))
    return shown


def _widths(rows: Sequence[_Cells], least: Sequence[int] = ()) -> list[int]:
    """Return how many columns of the screen each column of a table takes."""
    widths = [*least, *[0] * len(rows[0])][: len(rows[0])]
    for row in rows:
        for place, cell in enumerate(row[: len(widths)]):
            widths[place] = max(widths[place], min(CELL, sum(cell_len(text) for text, _ in cell)))
    return widths


class OpenTable:
    """A table that was cut: later rows belong below its header, and into its columns."""

    def __init__(self, table: Sequence[Token], text: str, later: str) -> None:
        """Begin a table with the known rows, at the end of a text; `later` is the text after it."""
        start = _line_start(text, table[0])
        self.header = text[start : text.index("\n", text.index("\n", start) + 1) + 1]
        """Its first two lines."""
        rows = _cells(table)
        lines = later.partition("\n\n")[0].split("\n")[: LOOK_AHEAD // len(rows[0])]
        seen = [it.strip().strip("|").split("|") for it in lines]
        self._widths = _widths([*rows, *([[(cell.strip(), "")] for cell in row] for row in seen)])
        self._sides = _sides(table)
        self.first = _table(rows, self._widths, self._sides)
        """The header and those rows."""

    def rows(self, table: Sequence[Token]) -> list[Paragraph]:
        """Return more rows of it, parsed below its header."""
        rows = _cells(table)
        self._widths = _widths(rows, self._widths)
        return _table(rows, self._widths, self._sides)[2:]


LOOK_AHEAD = 300
"""Cells after the cut of a table for which its columns are made wide enough."""
LIST_TAIL = 1_000
"""Characters of an unfinished list; a longer one is cut between its items."""
TAIL = 4_000
"""Characters of any other unfinished block; a longer one is cut at a line's end."""

LINES = 60
"""Lines that are parsed at once, fewer of a table or with many stops: many short lines cost as much as a few
long ones.
"""
CELLS = 7
"""How many cells of a table a line counts as. A row has as many as the widest line before it: the parser pads it."""
LINE_STOPS = 10
"""How many stops a line counts as."""
LINE = 120
"""How many characters a line counts as, besides its own."""
WORK = 6_000
"""Characters that one update parses, and at most one window more; the rest waits for the next update."""
HIGHLIGHTED = 8
"""How many characters each one of a code fence counts as, because colours are expensive."""

_ITEM = re.compile(r"(?:[-+*]|\d{1,9}[.)])[ \t]", re.MULTILINE)


def markdown(text: str) -> list[Paragraph]:
    """A whole text as paragraphs."""
    growing = GrowingMarkdown()
    growing.update(text)
    while growing.is_behind:
        growing.update(text)
    return [*growing.final, *growing.tail]


class GrowingMarkdown:
    """Markdown that grows at its end."""

    def __init__(self) -> None:
        self.final: list[Paragraph] = []
        """Paragraphs that no longer change."""
        self.tail: list[Paragraph] = []
        """Paragraphs of the block that still grows."""
        self._source = ""
        self._place = 0
        """How many characters of the source are final."""
        self._fence: CodeFence | None = None
        self._table: OpenTable | None = None
        self._needs_gap = False
        self._spent = 0
        self.is_behind = False
        """Whether another update is needed, because the text was too long for one."""

    def update(self, text: str) -> bool:
        """Apply the present text; returns False if it has not only grown, so that everything was made again."""
        has_grown = text.startswith(self._source) if len(text) < 4 * TAIL else self._continues(text)
        if not has_grown:
            self.final, self.tail, self._place, self._needs_gap = [], [], 0, False
            self._fence = self._table = None
        self._source = text
        self.tail = []
        self._spent = 0
        self.is_behind = True
        while self._spent <= WORK and self.is_behind:
            self.is_behind = self._step()
        return has_grown

    def _continues(self, text: str) -> bool:
        """Whether a long text begins like the previous one: only its end is compared."""
        known = self._source
        if len(text) < len(known) or text[:TAIL] != known[:TAIL]:
            return False
        return text[max(0, len(known) - TAIL) : len(known)] == known[-TAIL:]

    def _step(self) -> bool:
        """Continue after the final part; returns whether more is to be done."""
        if self._fence is not None:
            return self._in_fence(self._fence)
        if self._table is not None:
            return self._in_table(self._table)
        window, lines = _first_lines(self._source[self._place : self._place + 2 * TAIL])
        is_all = self._place + len(window) == len(self._source)
        self._spent += len(window) + int(LINE * lines)
        blocks = parsed(window)
        if not blocks:
            rest = self._source[self._place :]
            self._place += 0 if is_all else max(len(window), len(rest) - len(rest.lstrip("\n")))
            return not is_all
        settled = len(blocks) - 1
        if settled and is_all and len(window) <= TAIL and not _is_settled(window, _line_start(window, blocks[-1][0])):
            settled -= 1
        for block in blocks[:settled]:
            self._finish(rendered(block))
        if settled:
            self._place += _line_start(window, blocks[settled][0])
            return True
        if len(blocks) > 1 and is_all:
            self.tail = self._gapped([*rendered(blocks[0]), Paragraph(), *rendered(blocks[1])])
            return False
        return self._last(blocks[0], window, is_all=is_all)

    def _last(self, block: Sequence[Token], window: str, *, is_all: bool) -> bool:
        """Show the last block in its present form, or cut it."""
        token = block[0]
        if token.type == "fence" and (end := window.find("\n", _line_start(window, token))) >= 0:
            self._gap()
            self._place += end + 1
            self._fence = CodeFence(token.markup, _language(token), self._place)
            return True
        if token.type in ("bullet_list_open", "ordered_list_open") and len(window) > LIST_TAIL:
            places = [it.start() for it in _ITEM.finditer(window)]
            if len(places) > 1:
                return self._cut(window, places[-1])
        if len(window) > TAIL or not is_all:
            end = window.rfind("\n", 0, TAIL) + 1 or TAIL
            return self._cut(window, end, [block] if end >= len(window) else None)
        self.tail = self._gapped(rendered(block))
        return False

    def _cut(self, window: str, end: int, blocks: Sequence[Sequence[Token]] | None = None) -> bool:
        """Make everything before this place final, although its block continues; `blocks` if it is parsed already."""
        if blocks is None:
            self._spent += end
            blocks = parsed(window[:end])
        self._place += end
        *whole, last = blocks
        for block in whole:
            self._finish(rendered(block))
        if last[0].type == "table_open":
            self._table = OpenTable(last, window[:end], self._source[self._place : self._place + 2 * TAIL])
        self._finish(self._table.first if self._table is not None else rendered(last))
        self._needs_gap = False
        return True

    def _in_table(self, table: OpenTable) -> bool:
        """Handle rows of a table that was cut."""
        head = len(table.header)
        window, lines = _first_lines(
            self._source[self._place : self._place + 2 * TAIL], max(it.count("|") for it in table.header.split("\n"))
        )
        is_all = self._place + len(window) == len(self._source)
        self._spent += head + len(window) + int(LINE * lines)
        text = table.header + window
        block, *others = parsed(text)
        rows = table.rows(block)
        end = block[0].map[1] if block[0].map else 0
        if is_all and (end >= text.count("\n") or (others and not _is_settled(text, _line_start(text, others[-1][0])))):
            self.tail = [*rows, *(it for other in others for it in (Paragraph(), *rendered(other)))]
            return False
        self.final += rows
        if others:
            self._place += _line_start(text, others[0][0]) - head
        else:
            self._place += len(window)
        if others or text.endswith("\n\n"):
            self._table, self._needs_gap = None, True
        return True

    def _in_fence(self, fence: CodeFence) -> bool:
        """Handle lines of an open fence: each is final when its newline has come."""
        source = self._source
        while (end := source.find("\n", self._place)) >= 0:
            if self._spent > WORK:
                return True
            self._spent += HIGHLIGHTED * (20 + min(end - self._place, LONGEST))
            line = source[self._place : end]
            self._place = end + 1
            if fence.is_closed_by(line):
                self._end_fence(fence, end - len(line))
                return True
            self.final.append(fence.shown(line))
        rest = source[self._place :]
        self.tail = [] if not rest or fence.is_closed_by(rest) else [fence.shown(rest)]
        return False

    def _end_fence(self, fence: CodeFence, end: int) -> None:
        """Colour the lines of a fence, which ends here, as one text, unless that would cost too much."""
        lines = self._source[fence.start : end].split("\n")[:-1]
        whole = highlighted(list(map(printed, lines)), fence.language) if len(lines) <= MOST_LINES else None
        if whole is not None:
            self.final[len(self.final) - len(whole) :] = map(code_line, whole)
        self._fence, self._needs_gap = None, True

    def _finish(self, paragraphs: list[Paragraph]) -> None:
        self._gap()
        self.final += paragraphs
        self._needs_gap = True

    def _gap(self) -> None:
        if self._needs_gap:
            self.final.append(Paragraph())
            self._needs_gap = False

    def _gapped(self, paragraphs: list[Paragraph]) -> list[Paragraph]:
        return [Paragraph(), *paragraphs] if self._needs_gap else paragraphs


def _first_lines(window: str, widest: int = 0) -> tuple[str, float]:
    """Return the beginning of a text, with at most the lines that are parsed at once, and how many lines it counts as.

    `widest` is how many bars the header of the table has with which the text continues.
    """
    place, lines = 0, 0.0
    while place < len(window):
        end = window.find("\n", place) + 1 or len(window)
        pipes = window.count("|", place, end)
        widest = max(widest, pipes) if window[place:end].strip() else 0
        cost = max(1.0, (widest - 1) / CELLS) + len(_STOPS.findall(window, place, end)) / LINE_STOPS
        if place and lines + cost > LINES:
            break
        lines, place = lines + cost, end
    return window[:place], lines


def _is_settled(text: str, start: int) -> bool:
    """Whether later text can no longer join a block to the previous one: `a\\n#` may become `a\\n#b`."""
    return text[:start].endswith("\n\n") or text.count("\n", start) > 1


def _line_start(text: str, token: Token) -> int:
    """Return where the line of a token's beginning begins."""
    place = 0
    for _ in range(token.map[0] if token.map else 0):
        place = text.find("\n", place) + 1
    return place
