"""The two streams of a command, standard output and standard error: printing on them, and the capabilities of each.

Output is harmless on a terminal, unchanged in a pipe, and never lost without an error.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from accord.printable import columns, label, printable
from accord.redaction import mask_urls
from accord_tools.cli.exit_codes import OutputLost

if TYPE_CHECKING:
    from accord_tools.presentation.appearance import Appearance


def print_line(text: str) -> None:
    """Print a line on standard output: cleaned for a terminal, unchanged for a pipe or a file.

    Raises OutputLost if it cannot be written, and BrokenPipeError if its reader has closed the pipe.
    """
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    write_out((printable(text) if is_terminal else text) + "\n")


def print_json(value: Any) -> None:
    """Print a value as JSON, for the option `--json`."""
    import json  # help needs none of it

    print_line(json.dumps(value, indent=2, ensure_ascii=False))


def write_out(text: str = "") -> None:
    """Write this to standard output unchanged, and flush it while an error can still be reported."""
    if sys.stdout is not None:  # it is None if the program that started us has closed it
        _write(text, sys.stdout)


def _write(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        raise output_error(error) from error


def user_agrees(question: str) -> bool:
    """Ask the user at the terminal. Only a yes counts."""
    print_error(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_error(text: str) -> None:
    """Print a line on standard error, with secrets in URLs masked and cleaned for a terminal."""
    with suppress(OSError, OutputLost):  # nowhere is left to report it
        if sys.stderr is not None:
            _write(for_terminal(for_people(text), sys.stderr) + "\n", sys.stderr)


def for_terminal(text: str, stream: TextIO | None) -> str:
    """The text for this stream: wrapped between words if it is a terminal."""
    if stream is None or not stream.isatty():
        return text
    room = width(stream.fileno())
    return "\n".join(wrapped(line, room) for line in text.split("\n"))


def wrapped(line: str, room: int) -> str:
    """A line, broken between words if it has more columns; if it has two columns of text, below the second."""
    if len(line) <= room:
        return line
    import textwrap  # few lines are too long

    begin, hang = _columns_of(line)
    if begin < hang > room // 2:
        return f"{line[:hang].rstrip()}\n{wrapped(' ' * (begin + 4) + line[hang:], room)}"
    return "\n".join(
        textwrap.wrap(line, room, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False)
    )


def reflowed(text: str, room: int, indent: str = "") -> str:
    """Return a help text for this many columns: the paragraph of a line that is too long is filled again."""
    paragraphs: list[str] = []
    hang, is_prose = -1, False
    for line in text.splitlines():
        begin, second = _columns_of(line)
        goes_on = begin == hang == second and line.strip() and (is_prose or hang > 2)
        if goes_on and not line.lstrip().startswith("accord "):
            paragraphs[-1] += f"\n{line}"
        else:
            paragraphs.append(line)
            hang, is_prose = second if line.strip() else -1, begin == second and not line.endswith(":")
    filled: list[str] = []
    for paragraph in paragraphs:
        first, *others = paragraph.split("\n")
        fits = all(len(indent) + len(line) <= room for line in (first, *others))
        joined = paragraph if fits else wrapped(" ".join([first, *map(str.strip, others)]), room - len(indent))
        filled += [f"{indent}{line}".rstrip() for line in joined.split("\n")]
    return "\n".join(filled)


def _columns_of(line: str) -> tuple[int, int]:
    """Return where the text of a line begins, and where its second column does, or else the first."""
    begin = len(line) - len(line.lstrip())
    gap = line.find("  ", begin)
    return (begin, begin) if gap < 0 else (begin, gap + len(line[gap:]) - len(line[gap:].lstrip()))


def for_people(text: str) -> str:
    """Return this text with secrets in URLs masked, and safe for a terminal."""
    return printable(mask_urls(text))


def output_error(error: OSError) -> OSError | OutputLost:
    """Return the error for a failed write: OutputLost, or the error itself if the reader has closed the pipe."""
    if isinstance(error, BrokenPipeError) or error.errno == errno.EPIPE:
        return error
    return OutputLost(f"cannot write to standard output: {error.strerror or error}; the output is incomplete")


def drop_output() -> None:
    """Drop standard output; otherwise Python flushes it again at exit, and prints an error."""
    sys.stdout = None


def has_user() -> bool:
    """Whether we are in the foreground of a terminal, with a user who sees its output."""
    if sys.platform == "win32":
        return False
    try:
        return sys.stdin.isatty() and sys.stderr.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError, AttributeError):  # closed streams
        return False


def clean_last_resort() -> None:
    """Clean the lines of `logging.lastResort`, so that a peer's text in them cannot act on the terminal.

    It prints records without a handler to standard error.
    """
    import logging

    class PrintableLog(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return for_people(super().format(record))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableLog())


GAP = 2
NARROWEST = 8
"""The minimum width of a cell."""
LONGEST = 2_000
"""Columns of a cell in a pipe."""


def print_table(
    heading: Sequence[str], rows: Iterable[Sequence[str]], *, limit: int = 1_000, cut: int | None = None
) -> None:
    """Print a table, at a terminal at most `limit` rows of it, and each row on one line of the terminal.

    Where the terminal is too narrow, the column `cut` is cut first; by default the widest.
    """
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    given = list(rows)
    shown = given[:limit] if is_terminal else given
    cells = [[label(cell, LONGEST) for cell in row] for row in (heading, *shown)]
    widths = [max(columns(row[place]) for row in cells) for place in range(len(heading))]
    if is_terminal:
        import shutil  # slow to import, and only a table needs it

        room = shutil.get_terminal_size().columns
        if cut is not None:
            too_wide = sum(widths) + GAP * (len(widths) - 1) - room
            widths[cut] = max(NARROWEST, widths[cut] - max(0, too_wide))
        widths = _fitted(widths, room)
    print_line("\n".join(_line(row, widths) for row in cells))
    if len(shown) < len(given):
        print_line(f"… and {len(given) - len(shown):,} more")


def _fitted(widths: list[int], room: int) -> list[int]:
    """The widths with the widest ones reduced, until the table fits."""
    fitted = list(widths)
    while sum(fitted) + GAP * (len(fitted) - 1) > room and max(fitted) > NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [label(cell, width) for cell, width in zip(row, widths, strict=True)]
    padded = [cell + " " * (width + GAP - columns(cell)) for cell, width in zip(cells, widths, strict=True)]
    return "".join(padded).rstrip()


COLUMNS = 80
"""The width of a terminal that does not report one."""


class CommandStreams(NamedTuple):
    """The capabilities of the command's two streams."""

    answer: Appearance
    aside: Appearance
    together: bool
    """Whether both are the same terminal."""
    may_spin: bool
    """False if the answer goes into a pipe, whose reader may print it on the same terminal."""


def streams() -> CommandStreams:
    """Return standard output and standard error in their present state."""
    from accord_tools.presentation.appearance import appearance

    out, err = _is_terminal(1), _is_terminal(2)
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return CommandStreams(
        appearance(os.environ, encoding, is_terminal=out),
        appearance(os.environ, encoding, is_terminal=err),
        together=out and err and os.path.sameopenfile(1, 2),
        may_spin=err and not _is_pipe(1),
    )


def width(fd: int) -> int:
    """Return the present width of a terminal."""
    try:
        return os.get_terminal_size(fd).columns or COLUMNS
    except OSError:
        return COLUMNS


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
