"""What a command prints: harmless on a terminal, exact in a pipe, and never lost without a word."""

from __future__ import annotations

import errno
import logging
import sys
from contextlib import suppress
from typing import TextIO

from accord.cli.endings import OutputLost
from accord.masking import mask_urls
from accord.printable import printable


def say(text: str) -> None:
    """Print on standard output, with a newline: a terminal gets what it can be sent, a pipe or a file all of it.

    Raises OutputLost when it cannot be written, BrokenPipeError when its reader has gone.
    """
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    write_out((printable(text) if is_terminal else text) + "\n")


def write_out(text: str = "") -> None:
    """Write this to standard output as it is, and empty its buffer while what goes wrong can still be told."""
    if sys.stdout is not None:  # it is None where the program that started us has closed it
        _write(text, sys.stdout)


def _write(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        raise lost(error) from error


def complain(text: str) -> None:
    """Print on standard error, for people: without secrets of URLs, and as a terminal can be sent it."""
    with suppress(OSError, OutputLost):  # there is nowhere left to say so
        if sys.stderr is not None:
            _write(_for_people(text) + "\n", sys.stderr)


def _for_people(text: str) -> str:
    return printable(mask_urls(text))


def lost(error: OSError) -> OSError | OutputLost:
    """What a failed write means: a reader that has gone had enough, anything else lost what was printed."""
    if isinstance(error, BrokenPipeError) or error.errno == errno.EPIPE:
        return error
    return OutputLost(f"cannot write to standard output: {error.strerror or error}; the output is not complete")


def silence() -> None:
    """Standard output cannot be written; without this, Python tries it once more at exit, and complains."""
    sys.stdout = None


class PrintableLog(logging.Formatter):
    """A line of a log for people: what a peer said in it does not act on their terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return _for_people(super().format(record))


def clean_last_resort() -> None:
    """What no handler takes goes to standard error by way of the last resort of `logging`, which prints it as it is."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableLog())
