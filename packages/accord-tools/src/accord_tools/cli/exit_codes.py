"""The end of a command: its exit code, and its error as one line."""

from __future__ import annotations

import shlex
import sys

from accord import AccordError, ConfigurationError, PeerError, Timeout
from accord.errors import last_lines
from accord.installation import PluginError
from accord.printable import label
from accord.redaction import mask_urls

ENDED_WELL, FAILED, WRONG_USAGE, TIMED_OUT, STOPPED, UNWRITABLE, REFUSED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
"""`STOPPED`: the turn ended with another stop reason than `end_turn`. `REFUSED`: no user could be asked for permission,
and `--non-interactive fail` was given."""

LONGEST = 1_000
"""Columns of the line that reports an error."""
CONSIDERED = 16_000
"""Characters of an error that are processed: an agent may send megabytes."""


class WrongUsage(AccordError):
    """The command line is wrong, or names something that does not exist."""


class OutputLost(AccordError):
    """Standard output or standard error cannot be written, for instance because the disk is full."""


def exit_code(error: AccordError) -> int:
    if isinstance(error, OutputLost):
        return UNWRITABLE
    # A broken plug-in is no mistake of the command line.
    if isinstance(error, WrongUsage | ConfigurationError) and not isinstance(error, PluginError):
        return WRONG_USAGE
    return TIMED_OUT if isinstance(error, Timeout) else FAILED


def one_line(error: BaseException) -> str:
    """An error on one line: secrets in URLs are masked, control characters are made visible."""
    text = label(mask_urls(str(error)[:CONSIDERED]), LONGEST)
    if isinstance(error, PeerError) and error.code == -32000:
        text += f"; log in with `{_login_command()}`"
    if isinstance(error, PeerError) and error.message == "Internal error" and (last := last_lines(error.stderr, 1)):
        text += f"; the agent's last line on standard error: {label(mask_urls(last[0].strip()), LONGEST)}"
    return text


def _login_command() -> str:
    """The command that logs in to the agent of this command line."""
    agent = sys.argv[sys.argv.index("--") :] if "--" in sys.argv else []
    return label(shlex.join(["accord", "login", *agent]), LONGEST)
