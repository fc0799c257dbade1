"""The blocks of Markdown as paragraphs: headings, lists, quotes, tables, and the text in them. PURE.

The parser never sees HTML: raw HTML is text like any other, because text that is left out hides something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from rich.cells import cell_len

from accord.presentation.styled_text import TAB, Paragraph, Row, Span, clean
from accord.printable import printable
from accord.tui.code_fence import code_line, code_text
from accord.tui.highlight import highlighted, highlighted_line

MOST_COLUMNS, MOST_ROWS = 30, 500
"""Of a table; a larger one is shown as it was written."""
DEEPEST = 18
"""Levels of blocks within blocks; the parser leaves out what is in deeper ones than twenty."""
CELL = 60
"""Columns that a cell of a table takes at most."""


MOST_MARKS = 300
"""Characters of one text that may begin emphasis, a link, code or an entity; a text with more is shown as written."""
MARK_WORK = 500_000
"""The squares of those numbers, added up over what is parsed at once: the parser takes quadratic time for them."""

_MARKS = re.compile(r"[\[\]!*_~`<&\\]")


@cache
def parser() -> MarkdownIt:
    """The parser of Markdown."""
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.disable("reference")  # a definition would be text that is not shown
    made.core.ruler.at("inline", _parse_inline)
    return made


def _parse_inline(state: StateCore) -> None:
    """Parse the texts within blocks, as long as that is not too dear."""
    left = MARK_WORK
    for token in state.tokens:
        if token.type != "inline":
            continue
        children = token.children = token.children or []
        marks = len(_MARKS.findall(token.content))
        left -= marks * marks
        if marks <= MOST_MARKS and left >= 0:
            state.md.inline.parse(token.content, state.md, state.env, children)
            continue
        for number, line in enumerate(token.content.split("\n")):
            children += [Token("softbreak", "br", 0)] if number else []
            children.append(Token("text", "", 0, content=line))


def parsed(text: str) -> list[Sequence[Token]]:
    """The top-level blocks of a text. One that is nested too deeply is a block of plain text: the parser drops it."""
    tokens = parser().parse(text)
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
    """One block as paragraphs."""
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
            return _table(inside)
        case "hr":
            return [Paragraph([("─" * 24, "dim")], wrap="cut")]
        case _:  # a text of a kind that is not known is shown as it was written
            return [Paragraph([(line, "")]) for line in printable(opening.content).split("\n")]


def _together(tokens: Sequence[Token]) -> list[Paragraph]:
    """Blocks within a block, with blank lines between them."""
    shown: list[Paragraph] = []
    for block in _blocks(_raised(tokens)):
        shown += [Paragraph()] if shown else []
        shown += rendered(block)
    return shown


def _raised(tokens: Sequence[Token]) -> Sequence[Token]:
    """These tokens as a document of their own."""
    if tokens and (lowest := min(token.level for token in tokens)):
        return [token.copy(level=token.level - lowest) for token in tokens]
    return tokens


def _code(token: Token) -> list[Paragraph]:
    lines = [code_text(line) for line in token.content.removesuffix("\n").split("\n")]
    language = token.info.split()[0] if token.info.split() else ""
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

_OPENS = {"strong_open": "bold", "em_open": "italic", "s_open": "strike", "link_open": "link"}
_CLOSES = {"strong_close": "bold", "em_close": "italic", "s_close": "strike", "link_close": "link"}


def _inline(token: Token, style: str = "") -> list[Paragraph]:
    """The lines of a text with emphasis, links and code in it."""
    lines: list[list[Span]] = [[]]
    styles = [style] if style else []
    links: list[tuple[str, int]] = []
    for child in token.children or ():
        if child.type in _OPENS:
            styles.append(_OPENS[child.type])
            if child.type == "link_open":
                links.append((str(child.attrs.get("href", "")), len(lines[-1])))
        elif child.type in _CLOSES:
            styles.remove(_CLOSES[child.type])
            if child.type == "link_close" and links:
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
    """Show where a link leads, unless its text says it: a link must not lead elsewhere than it seems."""
    said = "".join(text for text, _ in line[start:])
    if target and clean(target) != said.strip():
        line.append((f" ({clean(target)})", "dim"))


# Tables


def _table(tokens: Sequence[Token]) -> list[Paragraph]:
    rows: list[list[list[Span]]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append([span for line in _inline(token) for span in (*line.spans, (" ", ""))][:-1])
    if not rows or len(rows) > MOST_ROWS or len(rows[0]) > MOST_COLUMNS:
        return [Paragraph([(" | ".join("".join(text for text, _ in cell) for cell in row), "")]) for row in rows]
    widths = [0] * len(rows[0])
    for row in rows:
        for place, cell in enumerate(row[: len(widths)]):
            widths[place] = max(widths[place], min(CELL, sum(cell_len(text) for text, _ in cell)))
    shown: list[Paragraph] = []
    for number, row in enumerate(rows):
        spans: list[Span] = []
        for place, cell in enumerate(row[: len(widths)]):
            used = sum(cell_len(text) for text, _ in cell)
            spans += [("  ", "")] if place else []
            spans += [(text, f"bold {style}".strip()) for text, style in cell] if number == 0 else cell
            spans += [(" " * (widths[place] - used), "")] if used < widths[place] else []
        shown.append(Paragraph(spans, wrap="words" if any(len(cell) > CELL for cell in row) else "cut"))
        if number == 0:
            shown.append(Paragraph([("─" * (sum(widths) + 2 * (len(widths) - 1)), "dim")], wrap="cut"))
    return shown
