"""Printing: harmless on a terminal, unchanged in a pipe, and never lost without an error."""

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
    """Print a line on standard output: cleaned for a terminal, unchanged for a pipe or a file.

    Raises OutputLost if it cannot be written, and BrokenPipeError if its reader has closed the pipe.
    """
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    write_out((printable(text) if is_terminal else text) + "\n")


def write_out(text: str = "") -> None:
    """Write this to standard output unchanged, and flush it while an error can still be reported."""
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
    """Print a line on standard error, with secrets in URLs masked and cleaned for a terminal."""
    with suppress(OSError, OutputLost):  # nowhere is left to report it
        if sys.stderr is not None:
            _write(for_people(text) + "\n", sys.stderr)


def for_people(text: str) -> str:
    """This text with secrets in URLs masked, and safe for a terminal."""
    return printable(mask_urls(text))


def lost(error: OSError) -> OSError | OutputLost:
    """The error for a failed write: OutputLost, or as it is if the reader has closed the pipe."""
    if isinstance(error, BrokenPipeError) or error.errno == errno.EPIPE:
        return error
    return OutputLost(f"cannot write to standard output: {error.strerror or error}; the output is incomplete")


def silence() -> None:
    """Give standard output up; otherwise Python flushes it again at exit, and prints an error."""
    sys.stdout = None


class PrintableLog(logging.Formatter):
    """Formats log lines so that a peer's text in them cannot act on the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return for_people(super().format(record))


def clean_last_resort() -> None:
    """Clean the lines of `logging.lastResort`, which prints records without a handler to standard error."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableLog())
