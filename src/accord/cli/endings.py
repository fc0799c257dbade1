"""How a command ends: exit codes, and an error as one clear line."""

from __future__ import annotations

from accord.errors import AccordError, PeerError, Timeout
from accord.masking import mask_urls
from accord.printable import label

ENDED_WELL, FAILED, WRONG_USAGE, TIMED_OUT, STOPPED, UNWRITABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
"""A turn that ended for another reason than its own end is `STOPPED`."""

LONGEST = 1_000
"""Columns of an error's line."""
CONSIDERED = 16_000
"""Characters of an error that are looked at: an agent may send megabytes."""


class WrongUsage(AccordError):
    """The command line asks for something that is not there."""


class OutputLost(AccordError):
    """Standard output cannot be written, and not because its reader has gone: the disk is full, for instance."""


def exit_code(error: AccordError) -> int:
    if isinstance(error, OutputLost):
        return UNWRITABLE
    if isinstance(error, WrongUsage):
        return WRONG_USAGE
    return TIMED_OUT if isinstance(error, Timeout) else FAILED


def one_line(error: BaseException) -> str:
    """What went wrong, on one line: without the secrets of URLs, and without what acts on a terminal."""
    text = label(mask_urls(str(error)[:CONSIDERED]), LONGEST)
    if isinstance(error, PeerError) and error.code == -32000:
        text += "; see `accord login`"
    return text
