"""`--trace FILE` and `--trace-secrets` of the commands that speak or forward the protocol, and the recording they name.

The recording is announced while it goes on, like that of a tap, so that viewers find it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli import printing
from accord.cli.endings import WrongUsage
from accord.errors import AccordError

if TYPE_CHECKING:
    from argparse import _ArgumentGroup  # pyright: ignore[reportPrivateUsage]

    from accord.trace import TraceFile


def arguments(group: argparse.ArgumentParser | _ArgumentGroup, what: str = "all messages") -> None:
    """Add the options; `what` says what is recorded."""
    group.add_argument("--trace", metavar="FILE", help=f"record {what} in this file, as JSON lines")
    group.add_argument("--trace-secrets", action="store_true", help="do not mask secrets in the --trace file")


@contextmanager
def recorded(
    options: argparse.Namespace, command: str, *, role: str, peer: str = "", agent: Sequence[str] = ()
) -> Generator[TraceFile | None]:
    """The recording that the options name, if they name one.

    If writing it fails, the command continues without it and keeps its exit code; one line says so at the end.
    """
    if options.trace is None:
        yield None
        return
    from accord import __version__
    from accord.masking import mask_urls
    from accord.tap.live import LiveTap, announced
    from accord.trace import FORMAT, TraceFile, TraceHeader
    from accord.trace.header import now

    path = str(Path(options.trace).absolute())
    header = TraceHeader(
        FORMAT,
        now(),
        role,
        peer,
        tool=f"accord {__version__}",
        command=tuple(agent),
        cwd=os.getcwd(),  # noqa: PTH109
    )
    try:
        trace = TraceFile(options.trace, secrets=options.trace_secrets, header=header)
    except AccordError as error:
        raise WrongUsage(f"--trace: {error}") from error
    words = tuple(mask_urls(word) for word in agent)
    tap = LiveTap(path, header.started, role, os.getpid(), os.getpid(), command=words, cwd=header.cwd)
    try:
        with announced(tap):
            yield trace
    finally:
        trace.close()
        if trace.problem is not None:
            problem = trace.problem.strerror or trace.problem
            printing.complain(f"{command}: --trace {options.trace} is incomplete: {problem}")
