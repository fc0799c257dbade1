"""Makes a peer's text safe for a terminal: it cannot control the terminal, hide text, or cover other lines. PURE.

A terminal obeys control codes. An escape sequence sets its title or its clipboard, moves the cursor and paints over a
question; a bidirectional override shows a word backwards; characters without a width hide text, and a hundred accents
on one letter cover the lines above it. So all text of a peer, a server or a file passes through this module before it
reaches a terminal. Pipes and files get the text unchanged, because a program that reads them wants the bytes.

The rule is per character: a character that a terminal would obey, or that a reader would not see, becomes visible. A
control character becomes its picture (ESC is `␛`), any other its number (`<U+202E>`). No character is left out, because
missing text hides something, too. A sequence (CSI, OSC, DCS) needs no parser: without the control character that starts
it, it is plain text. So a sequence that was split between two chunks of text is as harmless as a whole one.

Three characters depend on the one before, which is why `Printable` remembers it between chunks: a carriage return
(harmless before a newline), a combining mark (limited for each character) and a joiner (needed within emoji and by
Arabic and Indic scripts, invisible elsewhere).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

MOST_MARKS = 6
"""Combining marks that one character may carry; written languages need up to five."""

CUT = "…"

_HARMLESS = re.compile(r"[\t\n\x20-\x7e]*")
_JOINERS = "\u200c\u200d"
_JOINABLE = {"Lo", "Sk", "So", "Mc"}
_VARIATIONS = re.compile(r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# Letters and marks by their category, but invisible.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
# Emoji that are newer than this Python; no character of these blocks is a control.
_EMOJI = re.compile(r"[\U0001f000-\U0001fbff]")


class Printable:
    """Text that comes in chunks, made safe for a terminal.

    >>> text = Printable()
    >>> text.add("red \\x1b"), text.add("[31malert"), text.rest()
    ('red ␛', '[31malert', '')
    """

    __slots__ = ("_is_varied", "_joins", "_marks", "_return")

    def __init__(self) -> None:
        self._marks = MOST_MARKS
        """How many marks the last character has; the start of a line cannot have any."""
        self._joins = False
        """Whether a joiner may follow."""
        self._is_varied = False
        self._return = False
        """Whether the last character was a carriage return, which is not shown yet."""

    def add(self, chunk: str) -> str:
        """Return this chunk in printable form; a carriage return at its end waits for the next chunk."""
        if not self._return and chunk and _HARMLESS.fullmatch(chunk):
            self._follow(chunk[-1])
            return chunk
        return "".join(self._shown(character) for character in chunk)

    def rest(self) -> str:
        """Return the waiting characters, at the end of the text."""
        waited, self._return = self._return, False
        return visible("\r") if waited else ""

    def _shown(self, character: str) -> str:
        before = ""
        if self._return:
            self._return = False
            before = "" if character == "\n" else visible("\r")
            self._follow("\n")
        if character == "\r":
            self._return = True
            return before
        return before + self._alone(character)

    def _alone(self, character: str) -> str:
        category = unicodedata.category(character)
        if category in ("Mn", "Me"):
            return self._mark(character)
        if character in _JOINERS and self._joins:
            self._joins = False
            return character
        if character == "\n" or character == "\t" or _is_seen(character, category):
            self._follow(character, joins=category in _JOINABLE)
            return character
        if category == "Zs":
            self._follow(" ")
            return " "
        self._follow("\n")
        return visible(character)

    def _mark(self, character: str) -> str:
        varies = _VARIATIONS.match(character) is not None
        if self._marks >= MOST_MARKS or character in _INVISIBLE or (varies and self._is_varied):
            self._follow("\n")
            return visible(character)
        self._marks += 1
        self._is_varied |= varies
        return character

    def _follow(self, character: str, *, joins: bool = False) -> None:
        self._marks = MOST_MARKS if character in "\n\t" else 0
        self._joins = joins
        self._is_varied = False


def printable(text: str) -> str:
    """Make this text safe for a terminal: newlines and tabs stay, other controls and hidden characters become visible.

    >>> printable("ok\\x1b]0;title\\x07\\r\\nnext \\u202eexe.jpg")
    'ok␛]0;title␇\\nnext <U+202E>exe.jpg'
    """
    if _HARMLESS.fullmatch(text):
        return text
    cleaned = Printable()
    return cleaned.add(text) + cleaned.rest()


def label(text: str, most: int) -> str:
    """Return this text on one line of at most this many columns; an ellipsis marks a cut.

    >>> label("two\\nlines", 20), label("much too long", 8)
    ('two lines', 'much to…')
    """
    # Cut first, because a peer may send megabytes; read some more characters, because blanks are collapsed below.
    start = text[: 8 * most + 80]
    shown = cut(" ".join(printable(start).split()), most)
    return shown if len(start) == len(text) or shown.endswith(CUT) else cut(shown + CUT, most)


def visible(character: str) -> str:
    """The visible form of a character that is not printed."""
    number = ord(character)
    if number < 0x20:
        return chr(0x2400 + number)
    return "\N{SYMBOL FOR DELETE}" if number == 0x7F else f"<U+{number:04X}>"


def columns(text: str) -> int:
    """Return how many columns of a terminal this text takes; if terminals differ, the largest number.

    >>> columns("abc"), columns("日本"), columns("e\\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, most: int) -> str:
    """The longest start of a text that fits into this many columns."""
    if columns(text) <= most:
        return text
    kept, used = 0, columns(CUT)
    for character in text:
        used += _columns(character)
        if used > most:
            break
        kept += 1
    return text[:kept] + CUT


def wrapped(text: str, most: int) -> Iterator[str]:
    """The lines of a text, each of at most this many columns, broken between words if possible."""
    for line in text.expandtabs(4).split("\n"):
        yield from _wrapped_line(line, most)


def _wrapped_line(line: str, most: int) -> Iterator[str]:
    start, used, blank = 0, 0, 0
    place = 0
    while place < len(line):
        size = _columns(line[place])
        if used + size > most and place > start:
            end = blank if blank > start else place
            yield line[start:end].rstrip(" ")
            start = place = end
            used, blank = 0, 0
            continue
        used += size
        place += 1
        if line[place - 1] == " ":
            blank = place
    yield line[start:]


def _columns(character: str) -> int:
    if " " <= character <= "~":
        return 1
    if character == "\N{VARIATION SELECTOR-16}":  # asks for the wide form of the character before
        return 1
    if character in _JOINERS or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _is_seen(character: str, category: str) -> bool:
    if character in _INVISIBLE:
        return False
    if character.isprintable() or character == "\N{IDEOGRAPHIC SPACE}":
        return True
    return category == "Cn" and _EMOJI.match(character) is not None


def fenced(text: str, language: str = "") -> str:
    """Return this text as a code block, with a fence that is longer than any in the text.

    >>> fenced("a\\n```\\nb")
    '````\\na\\n```\\nb\\n````'
    """
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}"
