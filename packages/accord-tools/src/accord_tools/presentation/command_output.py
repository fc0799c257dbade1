"""The output of a command as paragraphs: colours, carriage returns and erased lines as a terminal shows them. PURE.

Programs draw progress bars with a carriage return and colour their output. Those few sequences are obeyed here, within
one line: SGR (colours), carriage return, backspace and erasing in the line. Other known sequences are dropped, as by a
terminal that does not know them; any other control character becomes visible. So a command cannot paint over the chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from accord.printable import CUT, printable
from accord_tools.presentation.appearance import COLOURS
from accord_tools.presentation.styled_text import LATER, LONGEST_LINE, TAB, Paragraph, Span, plain, printed

_PIECE = re.compile(
    r"\x1b\[[0-9;:?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>78]|[\r\b]|[^\x1b\r\b]+|\x1b"
)
_SEQUENCE = re.compile(r"\x1b\[[0-9;:?]*[A-Za-z]|[\r\b]")
_SGR = re.compile(r"\x1b\[([0-9;:]*)m")

_BEGINS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"} | {
    first + number: f"{name}{colour}"
    for first, name in ((30, "fg:"), (40, "bg:"), (90, "fg:bright_"), (100, "bg:bright_"))
    for number, colour in enumerate(COLOURS)
}
"""The style that begins with each number of an SGR sequence."""
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)} | {
    39: ("fg:",),
    49: ("bg:",),
}
"""The styles that end with it."""
LONGEST = 4_000
"""Characters of a line within which sequences are obeyed; the rest of the line is dropped, and counted."""
MOST = 40_000
"""Characters of one output in which sequences are obeyed; of later lines the beginning is shown, without them."""


def output_lines(text: str, most: int) -> list[Paragraph]:
    """The first lines of the output as paragraphs, at most this many."""
    style, left = "", MOST
    shown: list[Paragraph] = []
    for line in text.replace("\r\n", "\n").split("\n", most)[:most]:
        is_plain = "\x1b" not in line and "\r" not in line and "\b" not in line
        left -= min(len(line), LONGEST)
        if is_plain or left < 0:
            text = _SEQUENCE.sub("", line[:LONGEST]) if left < 0 else line
            spans = [(printed(text, LATER if left < 0 else LONGEST_LINE), style)] if line else []
        else:
            spans, style = _line(line, style)
        shown.append(Paragraph(spans, wrap="fold"))
    if shown and not shown[-1].spans:
        shown.pop()
    return shown


def shown_output(text: str, most: int) -> list[Paragraph]:
    """Return the first lines of a tool call's output, and how many more there are."""
    text = text.strip("\n").replace("\r\n", "\n")
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.index("\n") + 1 : -3].rstrip("\n")  # a fence around all of it means nothing
    if not text:
        return []
    count = text.count("\n") + 1
    text = text if count <= most + 1 else "\n".join(text.split("\n", most)[:most])
    lines = output_lines(text, most + 1) if _SEQUENCE.search(text) else plain(text, "dim", wrap="fold")
    return shortened(lines, most, count)


def shortened(lines: Sequence[Paragraph], most: int, count: int = 0) -> list[Paragraph]:
    """Return some of these lines, and how many more there are; `count` if not all are given. One more is
    shown instead.
    """
    more = max(count, len(lines)) - most
    if more <= 1:
        return list(lines)
    return [*lines[:most], Paragraph([(f"… {more:,} more lines", "dim")])]


def last_lines(text: str, most: int) -> tuple[str, int]:
    """The end of an output, at most this many lines; and how many lines are before it."""
    trimmed = text.rstrip("\n")
    end = len(trimmed)
    place = end
    for _ in range(most):
        place = trimmed.rfind("\n", 0, place)
        if place < 0:
            return trimmed, 0
    return trimmed[place + 1 :], trimmed.count("\n", 0, place) + 1


def _line(line: str, style: str) -> tuple[list[Span], str]:
    """Return one line as a terminal would show it; and the style that continues after it."""
    cells: list[Span] = []
    cursor = 0
    for piece in _PIECE.findall(line[:LONGEST]):
        if piece == "\r":
            cursor = 0
        elif piece == "\b":
            cursor = max(0, cursor - 1)
        elif (found := _SGR.fullmatch(piece)) is not None:
            style = _changed(style, found[1])
        elif piece.startswith("\x1b[") and piece.endswith("K"):
            del cells[0 if piece[2:-1] == "2" else cursor :]
        elif len(piece) > 1 and piece[0] == "\x1b":
            continue
        else:
            written = [(character, style) for character in printable(piece).expandtabs(TAB)]
            cells[cursor : cursor + len(written)] = written
            cursor += len(written)
    if (more := len(line) - LONGEST) > 0:
        cells.append((f"{CUT} ({more:,} more characters)", ""))
    return list(_joined(cells)), style


def _joined(cells: list[Span]) -> Iterator[Span]:
    """Return adjacent spans of one style joined."""
    for style, group in groupby(cells, itemgetter(1)):
        yield "".join([text for text, _ in group]), style


def _changed(style: str, codes: str) -> str:
    """A style after an SGR sequence."""
    names = style.split()
    numbers = [int(code) if code.isdigit() else 0 for code in codes.replace(":", ";").split(";")]
    place = 0
    while place < len(numbers):
        number = numbers[place]
        if number == 0:
            names = []
        elif number in (38, 48):
            size = 5 if numbers[place + 1 : place + 2] == [2] else 3
            colour = numbers[place + 2 : place + size]
            prefix = "fg" if number == 38 else "bg"
            names = [it for it in names if not it.startswith(prefix)]
            if len(colour) == size - 2 and all(it < 256 for it in colour):
                names.append(f"{prefix}:{','.join(map(str, colour))}")
            place += size - 1
        else:
            begun = _BEGINS.get(number, "")
            ended = _ENDS.get(number, (begun[:3] if ":" in begun else begun,))
            names = [it for it in names if not it.startswith(ended)] if begun or number in _ENDS else names
            names += [begun] if begun else []
        place += 1
    return " ".join(names)
