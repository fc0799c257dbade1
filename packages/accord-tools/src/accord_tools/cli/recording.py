"""`--trace FILE` and its options, of the commands that speak or forward the protocol, and the recording they name.

The recording is announced while it goes on, like that of a tap, so that viewers find it.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from accord import AccordError
from accord_tools.cli import printing
from accord_tools.cli.endings import WrongUsage

if TYPE_CHECKING:
    from argparse import _ArgumentGroup  # pyright: ignore[reportPrivateUsage]

    from accord_tools.tap.plan import RecordingPlan
    from accord_tools.tap.recording import Recording


def arguments(group: argparse.ArgumentParser | _ArgumentGroup, what: str = "all messages") -> None:
    """Add the options; `what` says what is recorded."""
    group.add_argument("--trace", metavar="FILE", help=f"record {what} in this file, as JSON lines")
    group.add_argument("--trace-secrets", action="store_true", help="do not mask secrets in the --trace file")
    group.add_argument(
        "--trace-max-size",
        metavar="SIZE",
        default="256M",
        help="begin another --trace file, FILE.2.jsonl, at this size (default: %(default)s)",
    )
    group.add_argument(
        "--trace-keep",
        metavar="SIZE",
        help="remove the oldest --trace files beyond this size in all (default: keep all)",
    )


@contextmanager
def recorded(
    options: argparse.Namespace, command: str, *, role: str, peer: str = "", agent: Sequence[str] = ()
) -> Generator[Recording | None]:
    """The recording that the options name, if they name one.

    If writing it fails, the command continues without it and keeps its exit code; one line says so at the end.
    """
    if options.trace is None:
        yield None
        return
    from accord.masking import mask_urls
    from accord_tools.tap.live import LiveTap, announced
    from accord_tools.tap.recording import Recording

    plan = _plan(options, role, peer, agent)
    try:
        trace = Recording(plan)
    except AccordError as error:
        raise WrongUsage(f"--trace: {error}") from error
    words = tuple(mask_urls(word) for word in agent)
    tap = LiveTap(str(trace.path.absolute()), plan.started, role, os.getpid(), os.getpid(), command=words, cwd=plan.cwd)
    try:
        with announced(tap) as trace.announcement:
            yield trace
    finally:
        trace.close()
        if trace.problem is not None:
            problem = trace.problem.strerror or trace.problem
            printing.complain(f"{command}: --trace {options.trace} is incomplete: {problem}")


def _plan(options: argparse.Namespace, role: str, peer: str, agent: Sequence[str]) -> RecordingPlan:
    from accord.trace.header import now
    from accord_tools.cli.sizes import size
    from accord_tools.tap.plan import RecordingPlan

    largest = size("--trace-max-size", options.trace_max_size)
    kept = 0 if options.trace_keep is None else size("--trace-keep", options.trace_keep)
    if 0 < kept < largest:
        raise WrongUsage(
            f"--trace-keep must be at least --trace-max-size, got {options.trace_keep} and {options.trace_max_size}"
        )
    return RecordingPlan(
        path=options.trace,
        command=tuple(agent),
        cwd=os.getcwd(),  # noqa: PTH109
        secrets=options.trace_secrets,
        most_file=largest,
        most_parts=kept,
        role=role,
        peer=peer,
        is_beside=True,
        started=now(),
        began=time.monotonic(),
        pid=os.getpid(),
    )
