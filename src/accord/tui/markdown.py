"""Markdown as paragraphs, once as a whole and once while it grows. PURE.

A message that grows is rendered many times a second, so what is finished must not be rendered again. Markdown is cut at
its last top-level block: all before is final, only the tail is parsed again. A tail that grows without end would make
that quadratic, so it is cut as well: an open code fence line by line, a long list between its items, anything else at
a line's end. A message that comes as a whole is parsed in slices, `WORK` characters at a time, so that the screen
answers keys in between.

    "# A\\n\\nSome te" ──▶ final: the heading      tail: the paragraph
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.token import Token

from accord.presentation.styled_text import Paragraph
from accord.tui.code_fence import CodeFence
from accord.tui.highlight import LONGEST
from accord.tui.markdown_blocks import parsed, rendered

LIST_TAIL = 1_000
"""Characters of an unfinished list; a longer one is cut between its items."""
TAIL = 8_000
"""Characters of any other unfinished block; a longer one is cut at a line's end."""

LINES = 200
"""Lines that are parsed at once, fewer of a wide table: many short lines are as dear as a few long ones."""
CELLS = 8
"""As how many cells of a table a line counts."""
LINE = 120
"""As how many characters a line counts, besides its own."""
WORK = 24_000
"""Characters that one update parses, and at most one window more; the rest waits for the next update."""
HIGHLIGHTED = 4
"""As how many characters each one of a code fence counts, because colours are dear."""

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
        self._needs_gap = False
        self._spent = 0
        self.is_behind = False
        """Whether another update is needed, because the text was too long for one."""

    def update(self, text: str) -> bool:
        """Take the text as it is now; returns False if it has not only grown, so that everything was made again."""
        has_grown = text.startswith(self._source) if len(text) < 4 * TAIL else self._continues(text)
        if not has_grown:
            self.final, self.tail, self._place, self._fence, self._needs_gap = [], [], 0, None, False
        self._source = text
        self.tail = []
        self._spent = 0
        self.is_behind = True
        while self._spent <= WORK:
            if not self._step():
                self.is_behind = False
                break
        return has_grown

    def _continues(self, text: str) -> bool:
        """Whether a long text begins as the one before did: only its end is compared."""
        known = self._source
        if len(text) < len(known) or text[:TAIL] != known[:TAIL]:
            return False
        return text[max(0, len(known) - TAIL) : len(known)] == known[-TAIL:]

    def _step(self) -> bool:
        """Go on after what is final; returns whether more is to be done."""
        if self._fence is not None:
            return self._in_fence(self._fence)
        window = _first_lines(self._source[self._place : self._place + 2 * TAIL])
        is_all = self._place + len(window) == len(self._source)
        self._spent += len(window) + LINE * (window.count("\n") + window.count("|") // CELLS)
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
        """Show the last block as it is, or cut it."""
        token = block[0]
        if token.type == "fence" and (end := window.find("\n", _line_start(window, token))) >= 0:
            self._fence = CodeFence.of(token)
            self._gap()
            self._place += end + 1
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
        """Let what is before this place be final, although its block goes on; `blocks` if it is parsed already."""
        if blocks is None:
            self._spent += end
            blocks = parsed(window[:end])
        for block in blocks:
            self._finish(rendered(block))
        self._needs_gap = False
        self._place += end
        return True

    def _in_fence(self, fence: CodeFence) -> bool:
        """Lines of an open fence: each is final when its newline has come."""
        source = self._source
        while (end := source.find("\n", self._place)) >= 0:
            if self._spent > WORK:
                return True
            self._spent += HIGHLIGHTED * (20 + min(end - self._place, LONGEST))
            line = source[self._place : end]
            self._place = end + 1
            if fence.is_closed_by(line):
                self._end_fence()
                return True
            self.final.append(fence.add(line))
        rest = source[self._place :]
        self.tail = [] if not rest or fence.is_closed_by(rest) else [fence.shown(rest)]
        return False

    def _end_fence(self) -> None:
        fence, self._fence = self._fence, None
        if fence is not None and (again := fence.whole()) is not None:
            self.final[len(self.final) - len(again) :] = again
        self._needs_gap = True

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


def _first_lines(window: str) -> str:
    """The beginning of a text, with no more lines than are parsed at once."""
    place, left = 0, LINES
    while left > 0 and (end := window.find("\n", place)) >= 0:
        left -= 1 + window.count("|", place, end) // CELLS
        place = end + 1
    return window if left > 0 else window[:place]


def _is_settled(text: str, start: int) -> bool:
    """Whether what comes can no longer make a block a part of the one before: `a\\n#` may become `a\\n#b`."""
    return text[:start].endswith("\n\n") or text.count("\n", start) > 1


def _line_start(text: str, token: Token) -> int:
    """Where the line begins that a token begins in."""
    place = 0
    for _ in range(token.map[0] if token.map else 0):
        place = text.find("\n", place) + 1
    return place
