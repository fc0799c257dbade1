"""How a command ends: exit codes, and an error as one clear line."""

from __future__ import annotations

from accord.errors import AccordError, PeerError, Timeout

ENDED_WELL, FAILED, WRONG_USAGE, TIMED_OUT, STOPPED, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""A turn that ended for another reason than its own end is `STOPPED`."""

LONGEST = 1_000


class WrongUsage(AccordError):
    """The command line asks for something that is not there."""


def exit_code(error: AccordError) -> int:
    if isinstance(error, WrongUsage):
        return WRONG_USAGE
    return TIMED_OUT if isinstance(error, Timeout) else FAILED


def one_line(error: BaseException) -> str:
    """What went wrong, on one line, with what the agent told of it."""
    text = " ".join(str(error).split())
    if isinstance(error, PeerError) and error.code == -32000:
        text += "; see `accord login`"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
