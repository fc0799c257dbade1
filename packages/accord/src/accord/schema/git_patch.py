"""Converts a file's text before and after to a git patch, and a git patch to its texts.

    diff --git /home/me/hello.txt /home/me/hello.txt
    index ce013625..e427984d 100644                       git's own names of the two texts: a hash of each
    --- /home/me/hello.txt
    +++ /home/me/hello.txt
    @@ -1 +1 @@
    -hello
    +HELLO

A patch usually shows only the lines around a change, and does not contain the length of the file. But its `index` line
names both texts by a hash, so a reader that rebuilds texts from a patch can verify them. `read` does, and refuses those
that do not match; `write` with all lines as context makes a patch that `read` can always rebuild.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

CONTEXT = 3
"""Unchanged lines around a change, as git has it."""

MOST_PAIRS = 250_000
"""With more pairs of equal lines, difflib would take seconds, and the changed part is replaced as a whole."""

_NO_NEWLINE = "\\ No newline at end of file\n"
_NOTHING = "/dev/null"
_NO_TEXT = "0" * 40


class _Line(NamedTuple):
    mark: Literal[" ", "-", "+"]
    text: str


def write(path: str, old: str | None, new: str | None, *, context: int | None = CONTEXT) -> str:
    """Return the patch that changes `old` to `new`, each None for no file; `context` None shows the whole file."""
    header = f"diff --git {_quoted(path)} {_quoted(path)}\n"
    if old is None:
        header += f"new file mode 100644\nindex {_NO_TEXT}..{_name_of(new or '')}\n"
    elif new is None:
        header += f"deleted file mode 100644\nindex {_name_of(old)}..{_NO_TEXT}\n"
    else:
        header += f"index {_name_of(old)}..{_name_of(new)} 100644\n"
    hunks = "".join(_hunks(_compared(_lines(old or ""), _lines(new or "")), context))
    if not hunks:
        return header
    before, after = (_NOTHING if text is None else _quoted(path) for text in (old, new))
    return f"{header}--- {before}\n+++ {after}\n{hunks}"


# Writing


def _lines(text: str) -> list[str]:
    """The lines, each with its newline; git knows no other line ending."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _compared(old: list[str], new: list[str]) -> list[_Line]:
    """Return both texts as one list of lines: kept, removed and added."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = difflib.SequenceMatcher(None, before, after)
    places: dict[str, list[int]] = cast("Any", matcher).b2j  # documented, but unknown to type checkers
    if sum(len(places.get(line, ())) for line in before) > MOST_PAIRS:
        changes = [_Line("-", text) for text in before] + [_Line("+", text) for text in after]
    else:
        changes = [line for code in matcher.get_opcodes() for line in _changed(before, after, *code)]
    context_before, context_after = old[:head], old[len(old) - tail :]
    return [*(_Line(" ", text) for text in context_before), *changes, *(_Line(" ", text) for text in context_after)]


def _changed(old: list[str], new: list[str], what: str, a: int, b: int, c: int, d: int) -> list[_Line]:
    if what == "equal":
        return [_Line(" ", text) for text in old[a:b]]
    return [_Line("-", text) for text in old[a:b]] + [_Line("+", text) for text in new[c:d]]


def _hunks(lines: list[_Line], context: int | None) -> Iterator[str]:
    old_line = new_line = done = 0
    for start, end in _shown(lines, context):
        skipped = start - done  # all lines between hunks are unchanged
        body = lines[start:end]
        old_count = sum(line.mark != "+" for line in body)
        new_count = sum(line.mark != "-" for line in body)
        old_line, new_line = old_line + skipped, new_line + skipped
        yield f"@@ -{_span(old_line, old_count)} +{_span(new_line, new_count)} @@\n"
        for mark, text in body:
            yield mark + text if text.endswith("\n") else f"{mark}{text}\n{_NO_NEWLINE}"
        old_line, new_line, done = old_line + old_count, new_line + new_count, end


def _shown(lines: list[_Line], context: int | None) -> Iterator[tuple[int, int]]:
    """Return the lines of the hunks: each change with its context, adjacent ones together."""
    if context is None:
        yield from [(0, len(lines))] if lines else []
        return
    start = end = -1
    for at, line in enumerate(lines):
        if line.mark == " ":
            continue
        if start >= 0 and at - context > end:
            yield start, end
            start = -1
        if start < 0:
            start = max(0, at - context)
        end = min(len(lines), at + 1 + context)
    if start >= 0:
        yield start, end


def _span(lines_before: int, count: int) -> str:
    """Return where a hunk is in a text: an empty one is after the line that it names."""
    first = lines_before + 1 if count else lines_before
    return str(first) if count == 1 else f"{first},{count}"


_NEEDS_QUOTES = re.compile(r'[\x00-\x1f"\\\x7f]')


def _quoted(path: str) -> str:
    """A path as git writes it: in quotes where it has characters that would end it."""
    return f'"{_NEEDS_QUOTES.sub(_escaped, path)}"' if _NEEDS_QUOTES.search(path) else path


def _escaped(found: re.Match[str]) -> str:
    return "\\" + (found[0] if found[0] in '"\\' else f"{ord(found[0]):03o}")


def _name_of(text: str) -> str:
    """The hash by which git knows a file with this text."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


# Reading


@dataclass(frozen=True, slots=True)
class FileTexts:
    """One file of a patch: its name there, and its whole text before and after, each None if there is no file."""

    name: str
    old: str | None
    new: str | None

    def may_be(self, path: str) -> bool:
        """Whether this path can be meant: the whole of it, or its end after git's `b/`."""
        return self.name == path or f"/{path}".endswith("/" + self.name.removeprefix("b/").removeprefix("/"))


def read(patch: str) -> list[FileTexts]:
    """Return the whole files of a patch; raises ValueError if their texts cannot be rebuilt."""
    return [section.texts() for section in _sections(patch)]


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_INDEX = re.compile(r"index ([0-9a-f]{7,40})\.\.([0-9a-f]{7,40})\b")
_WITHOUT_TEXTS = ("Binary files ", "GIT binary patch", "rename ", "copy ", "similarity ")


@dataclass(slots=True)
class _Section:
    """The part of a patch about one file; `open_sides` are those whose last line came last."""

    name: str
    added: bool = False
    deleted: bool = False
    names_of_texts: tuple[str, str] | None = None
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    open_sides: list[list[str]] = field(default_factory=list[list[str]])

    def read_header(self, line: str) -> None:
        if line.startswith(_WITHOUT_TEXTS):
            raise ValueError("the patch must change only text files")
        if (index := _INDEX.match(line)) is not None:
            self.names_of_texts = (index[1], index[2])
        elif line.startswith("+++ ") and line != f"+++ {_NOTHING}":
            self.name = _unquoted(line[4:].removesuffix("\t"))
        self.added |= line.startswith("new file mode ") or line == f"--- {_NOTHING}"
        self.deleted |= line.startswith("deleted file mode ") or line == f"+++ {_NOTHING}"

    def read_hunk(self, head: re.Match[str], lines: Iterator[str]) -> None:
        """Return the lines of a hunk, by the counts at its head: the form of a line proves nothing."""
        old_first, old_left, new_first, new_left = (1 if number is None else int(number) for number in head.groups())
        if (old_first - (old_left > 0), new_first - (new_left > 0)) != (len(self.old), len(self.new)):
            raise ValueError("lines are missing in the patch")
        while old_left > 0 or new_left > 0:
            mark = self.read_line(next(lines, ""))
            old_left -= mark in (" ", "-")
            new_left -= mark in (" ", "+")

    def read_line(self, line: str) -> str:
        mark, text = (line[:1], line[1:]) if line != "\n" else (" ", line)  # some tools cut spaces off
        if mark == "\\":
            for side in self.open_sides:
                side[-1] = side[-1].removesuffix("\n")
        elif mark in (" ", "-", "+"):
            self.open_sides = [self.old] * (mark != "+") + [self.new] * (mark != "-")
            for side in self.open_sides:
                side.append(text)
        else:
            raise ValueError("the patch ends in the middle of a change")
        return mark

    def texts(self) -> FileTexts:
        old = None if self.added else "".join(self.old)
        new = None if self.deleted else "".join(self.new)
        if self.names_of_texts is None and not self.added:
            raise ValueError("the patch has no index line, so its texts cannot be verified")
        for text, name in zip((old, new), self.names_of_texts or (), strict=False):
            if text is not None and not _name_of(text).startswith(name):
                raise ValueError("the patch does not contain the whole file")
        return FileTexts(self.name, old, new)


def _sections(patch: str) -> list[_Section]:
    sections: list[_Section] = []
    lines = iter(_lines(patch))
    for line in lines:
        if line.startswith("diff --git "):
            sections.append(_Section(_name_in(line.rstrip("\n").removeprefix("diff --git "))))
        elif not sections:
            continue  # text before the first file, in a mail for instance
        elif (head := _HUNK.match(line)) is not None:
            sections[-1].read_hunk(head, lines)
        elif line.startswith("\\"):
            sections[-1].read_line(line)
        else:
            sections[-1].read_header(line.rstrip("\n"))
    if not sections:
        raise ValueError("not a git patch")
    return sections


def _name_in(names: str) -> str:
    """The second of two names that differ at most in git's `a/` and `b/`."""
    return _unquoted(names[len(names) // 2 + 1 :])


_UNESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def _unquoted(name: str) -> str:
    if not name.startswith('"'):
        return name
    data = re.sub(rb"\\([0-7]{3}|.)", _unescaped, name[1:-1].encode("utf-8", "surrogatepass"))
    return data.decode("utf-8", "replace")


def _unescaped(found: re.Match[bytes]) -> bytes:
    said = found[1]
    return bytes([int(said, 8) & 0xFF]) if len(said) == 3 else _UNESCAPED.get(said, said)
