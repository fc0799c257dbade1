r"""`TextDocument`: a text with its lines, which its client changes. PURE.

Offsets are indexes of the `str`; positions are the client's, in the negotiated encoding. The starts of the lines are
stored, and a change replaces only those that it touches: finding them again in a large text for each keystroke would
dominate the cost.

**Lines** begin after `\n`, `\r\n` and `\r`, and after nothing else, as in editors and their protocols. `str.splitlines`
also splits at form feeds and at U+2028; a position would then be off by lines.

**Positions.** A position is a line and a character, both from zero. Client and agent negotiate the unit of characters:

| encoding | a character is | of "a😀" there are |
|---|---|---|
| `utf-32` | a code point, as in a `str` | 2 |
| `utf-16` | a 16-bit unit: two for a code point above U+FFFF | 3 |
| `utf-8` | a byte | 5 |

Half a surrogate pair, which JSON can hold, counts as one unit of 16 bits and as three bytes. A character past the end
of the line means the end of the line. One inside a code point means the start of that code point.

**Edits** are new text for parts of a text. Those of one suggestion all refer to the text before any of them, and never
overlap. An edit begins and ends where a position can: there is none between `\r` and `\n`, so an edit there includes
the whole line ending.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import quote, unquote, urlsplit

from accord.schema import v1

_ENDING = re.compile(r"\r\n|\n|\r")


def line_starts(text: str) -> list[int]:
    """The offset at which each line begins; the first is 0."""
    return [0, *(ending.end() for ending in _ENDING.finditer(text))]


def lines_of(text: str) -> list[str]:
    """The lines with their endings; together they are the text."""
    starts = line_starts(text)
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True) if start < end]


def is_inside_ending(text: str, offset: int) -> bool:
    r"""Whether an offset is between `\r` and `\n`: no position can name it."""
    return 0 < offset < len(text) and text[offset - 1] == "\r" and text[offset] == "\n"


Encoding: TypeAlias = Literal["utf-32", "utf-16", "utf-8"]

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
"""The encodings, in our order of preference: `utf-32` needs no arithmetic."""

DEFAULT: Encoding = "utf-16"
"""The encoding if none was negotiated; every client and agent must support it."""


def chosen(offered: Sequence[str]) -> Encoding | None:
    """Return the encoding that we choose of those that a client offers; None if we know none of them."""
    preferred: tuple[Encoding, ...] = ("utf-32", "utf-8", "utf-16")
    return next((it for it in preferred if it in offered), None)


def character_at(line: str, index: int, encoding: Encoding) -> int:
    """Return the number of characters of this encoding before this index of a line."""
    if encoding == "utf-32" or line.isascii():
        return index
    head = line[:index]
    if encoding == "utf-16":
        return len(head) + sum(code > "\uffff" for code in head)
    return len(head.encode("utf-8", "surrogatepass"))


def index_at(line: str, character: int, encoding: Encoding) -> int:
    """Return the index in a line, given without its ending, of this character of this encoding."""
    if encoding == "utf-32" or line.isascii():
        return min(character, len(line))
    width = _width_in_utf_16 if encoding == "utf-16" else _width_in_utf_8
    passed = 0
    for index, code in enumerate(line):
        passed += width(code)
        if passed > character:
            return index
    return len(line)


def _width_in_utf_16(code: str) -> int:
    return 2 if code > "\uffff" else 1


def _width_in_utf_8(code: str) -> int:
    if code < "\x80":
        return 1
    if code < "\u0800":
        return 2
    return 3 if code <= "\uffff" else 4


_ENDINGS = "\r\n"


class TextDocument:
    """A text that changes, and its positions.

    >>> document = TextDocument("a😀b\\nc", "utf-16")
    >>> document.position(2), document.offset(v1.Position(0, 3))
    (Position(line=0, character=3), 2)
    """

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.encoding: Encoding = encoding
        self._text = text
        self._starts = line_starts(text)

    def copy(self) -> TextDocument:
        """Return an independent copy; it costs nothing, because texts and lists of lines are shared."""
        made = TextDocument("", self.encoding)
        made._text, made._starts = self._text, self._starts
        return made

    @property
    def text(self) -> str:
        """The whole text."""
        return self._text

    @property
    def lines(self) -> list[str]:
        """The lines, without their endings; a text that ends with a line's ending has an empty last line."""
        return [self._line(number) for number in range(len(self._starts))]

    def position(self, offset: int) -> v1.Position:
        """The position of an offset; an offset inside a line's ending is the end of the line."""
        if not 0 <= offset <= len(self._text):
            raise ValueError(f"offset must be from 0 to {len(self._text)}, the length of the text; got {offset}")
        number = bisect_right(self._starts, offset) - 1
        line = self._line(number)
        return v1.Position(number, character_at(line, min(offset - self._starts[number], len(line)), self.encoding))

    def offset(self, position: v1.Position) -> int:
        """The offset of a position; past the end of its line it is that end, past the last line the end of the text."""
        if position.line >= len(self._starts):
            return len(self._text)
        return self._starts[position.line] + index_at(self._line(position.line), position.character, self.encoding)

    def range(self, start: int, end: int) -> v1.Range:
        """The range of the text between two offsets."""
        return v1.Range(self.position(start), self.position(end))

    def offsets(self, range: v1.Range) -> tuple[int, int]:  # noqa: A002
        """The offsets of a range; raises ValueError for one that ends before it starts."""
        start, end = self.offset(range.start), self.offset(range.end)
        if end < start:
            raise ValueError("the range ends before it starts")
        return start, end

    def replace(self, start: int, end: int, new: str) -> None:
        """Replace the text between two offsets."""
        starts, before = self._starts, len(self._text)
        # The last line that begins before the change and the first that begins after it both stay: each follows the
        # ending of a line that the change does not touch. One character more on the left, for a `\r` before a new `\n`.
        first = max(bisect_right(starts, start - 1) - 1, 0)
        rest = bisect_right(starts, end)
        self._text = self._text[:start] + new + self._text[end:]
        grown = len(self._text) - before
        begin = starts[first]
        until = starts[rest] + grown if rest < len(starts) else len(self._text) + 1
        found = (begin + it for it in line_starts(self._text[begin : min(until, len(self._text))])[1:])
        self._starts = [
            *starts[: first + 1],
            *(it for it in found if it < until),
            *(it + grown for it in starts[rest:]),
        ]

    def apply(self, changes: Sequence[v1.TextDocumentContentChangeEvent]) -> None:
        """Apply changes one after another: each range means the text after the changes before it."""
        for change in changes:
            start, end = (0, len(self._text)) if change.range is None else self.offsets(change.range)
            self.replace(start, end, change.text)

    def _line(self, number: int) -> str:
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._text)
        return self._text[start:end].rstrip(_ENDINGS)


class Edit(NamedTuple):
    """New text for the part between two offsets."""

    start: int
    end: int
    text: str


def smallest_edit(old: str, new: str) -> Edit:
    """Return the one edit that turns the old text into the new, without the common parts at both ends.

    >>> smallest_edit("one two three", "one 2 three")
    Edit(start=4, end=7, text='2')
    """
    start = _common(old, new)
    end = _common_end(old, new, min(len(old), len(new)) - start)
    return addressable(old, Edit(start, len(old) - end, new[start : len(new) - end]))


def line_edits(old: str, new: str) -> list[Edit]:
    """The edits by whole lines that make the new text of the old one, in order; empty if the texts are the same."""
    before, after = lines_of(old), lines_of(new)
    offsets = [0]
    for line in before:
        offsets.append(offsets[-1] + len(line))
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        smaller(old, Edit(offsets[first], offsets[last], "".join(after[start:end])))
        for kind, first, last, start, end in matcher.get_opcodes()
        if kind != "equal"
    ]


def smaller(text: str, edit: Edit) -> Edit:
    """The same edit without the text at its ends that it does not change."""
    inner = smallest_edit(text[edit.start : edit.end], edit.text)
    return addressable(text, Edit(edit.start + inner.start, edit.start + inner.end, inner.text))


def addressable(text: str, edit: Edit) -> Edit:
    """Return the same edit, with neither end inside a line ending."""
    start, end, new = edit
    if is_inside_ending(text, start):
        start, new = start - 1, "\r" + new
    if is_inside_ending(text, end):
        end, new = end + 1, new + "\n"
    return Edit(start, end, new)


def with_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with these edits; raises ValueError if two of them overlap.

    >>> with_edits("one two", [Edit(4, 7, "2"), Edit(0, 3, "1")])
    '1 2'
    """
    pieces: list[str] = []
    done = 0
    for edit in in_order(edits):
        pieces += (text[done : edit.start], edit.text)
        done = edit.end
    return "".join((*pieces, text[done:]))


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """Return these edits in the order of the text; raises ValueError if two of them overlap."""
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    for before, after in pairwise(ordered):
        if after.start < before.end:
            raise ValueError(f"edits of one suggestion must not overlap: {before.end} comes after {after.start}")
    return ordered


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str, most: int) -> int:
    """Return the length of the common suffix of two texts, at most this many characters."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle :] == other[len(other) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low


_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")
_DRIVE = re.compile(r"/?([a-zA-Z])(?::|%3[aA])(?=/|$)")


def is_uri(text: str) -> bool:
    """Whether this is a URI rather than a path; one letter and a colon are a drive."""
    return _SCHEME.match(text) is not None


def uri_of(path: str | Path, folder: Path | None = None) -> str:
    """Return the `file:` URI of a path, which may be relative to this folder; a URI is not changed."""
    if isinstance(path, str) and is_uri(path):
        return path
    return (Path(path) if folder is None else folder / path).absolute().as_uri()


def key_of(uri: str) -> str:
    """Return one normalized text for all URIs of the same document, whatever is percent-encoded in them.

    >>> key_of("FILE:///C%3A/a%20b") == key_of("file:///c:/a b")
    True
    """
    if uri[:5].lower() != "file:":
        return uri
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if drive := _DRIVE.match(path):
        path = "/" + str(PureWindowsPath(f"{drive[1].lower()}:{path[drive.end() :]}").as_posix())
    else:
        path = str(PurePosixPath(path))
    host = "" if parts.netloc == "localhost" else parts.netloc.lower()
    rest = f"?{parts.query}#{parts.fragment}" if parts.query or parts.fragment else ""
    return f"file://{host}{quote(path)}{rest}"
