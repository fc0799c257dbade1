"""The options of traces: FILE of the commands that read them, and `--trace FILE` of those that speak the protocol.

FILE is a path, a part of a stored trace's name, or nothing for the newest stored trace. A recording is announced while
it runs, like that of a tap, so that viewers find it.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from argparse import _ArgumentGroup  # pyright: ignore[reportPrivateUsage]
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from accord import AccordError, DecodeError
from accord_tools.cli.agent_options import LocalCommand
from accord_tools.cli.command_table import option
from accord_tools.cli.console import print_error
from accord_tools.cli.exit_codes import WrongUsage, one_line

if TYPE_CHECKING:
    from accord_tools.tap import KeptTrace
    from accord_tools.tap.recorder import Recording
    from accord_tools.tap.recorder_protocol import RecordingPlan

TRACE_HELP = "a file, or a part of the name of a kept trace (default: the newest kept trace)"


def find_trace(given: str | None) -> str:
    """The path of the trace that the user means."""
    from accord_tools.tap import kept_traces, traces_folder

    if given is not None and (given == "-" or Path(given).is_file()):
        return given
    kept = kept_traces()
    if given is None:
        if not kept:
            raise WrongUsage(f"no traces in {traces_folder()}; name a file, or record one: accord trace -- COMMAND...")
        return kept[0].path
    named = [trace.path for trace in kept if given in Path(trace.path).name]
    if not named:
        raise WrongUsage(f"{given} is neither a file nor a part of the name of a kept trace; see accord trace list")
    if len(named) > 1:
        names = ", ".join(Path(path).name for path in named[:5])
        raise WrongUsage(f"{given} is a part of {len(named)} names: {names}")
    return named[0]


def live_trace(path: str) -> KeptTrace | None:
    """Return the trace that is being written to this file; None if none is."""
    from accord_tools.tap import kept_traces

    real = str(Path(path).resolve())
    return next((trace for trace in kept_traces() if trace.path == real and trace.live is not None), None)


_SIZE = re.compile(r"(\d+)\s*([KMG]?)(?:I?B)?", re.IGNORECASE)
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@contextmanager
def readable_trace(path: str) -> Generator[None]:
    """Report a file that cannot be read, or is no trace, as wrong usage or as damage."""
    try:
        yield
    except DecodeError as error:
        raise AccordError(f"{path}: {error}") from error
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise WrongUsage(f"cannot read {path}: {error.strerror}") from error


def size_option(what: str, text: str) -> int:
    """Parse a size such as 64M, in bytes; `what` names the option in an error."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise WrongUsage(
            f"{what} must be a positive number of bytes, with K, M or G for more, such as 64M; got {text!r}"
        )
    return int(found[1]) * _FACTORS[found[2].upper()]


def trace_arguments(group: argparse.ArgumentParser | _ArgumentGroup, what: str = "all messages") -> None:
    """Add the options; `what` describes the recording."""
    option(group, "--trace FILE", f"record {what} in this file, as JSON lines")
    option(group, "--trace-secrets", "do not mask secrets in the --trace file")
    option(
        group,
        "--trace-max-size SIZE",
        "begin another --trace file, FILE.2.jsonl, at this size (default: %(default)s)",
        default="256M",
    )
    option(group, "--trace-keep SIZE", "remove the oldest --trace files beyond this size in all (default: keep all)")


@contextmanager
def recorded_trace(
    options: argparse.Namespace, command: str, *, role: str, peer: str = "", agent: Sequence[str] = ()
) -> Generator[Recording | None]:
    """The recording that the options name, if they name one.

    If writing it fails, the command continues without it and keeps its exit code; one line reports it at the end.
    """
    if options.trace is None:
        yield None
        return
    from accord_tools.tap.recorder import Recording, live_tap
    from accord_tools.tap.trace_folder import announced

    plan = _plan(options, role, peer, agent)
    try:
        trace = Recording(plan)
    except AccordError as error:
        raise WrongUsage(f"--trace: {error}") from error
    try:
        with announced(live_tap(plan, trace)) as trace.announcement:
            yield trace
    finally:
        trace.close()
        if trace.problem is not None:
            problem = trace.problem.strerror or trace.problem
            print_error(f"{command}: --trace {options.trace} is incomplete: {problem}")


def record_agent(name: str, command: LocalCommand, plan: RecordingPlan) -> int:
    """Run an agent behind a tap, in place of this process; returns its exit code. Errors name this command."""
    from accord_tools.tap.tapped_agent import end_like, run_tapped

    code, problem = run_tapped(command.words, plan, cwd=command.cwd, env=command.env)
    if problem is not None:
        print_error(f"{name}: the recording is incomplete: {one_line(AccordError(problem))}")
    return end_like(code)


def _plan(options: argparse.Namespace, role: str, peer: str, agent: Sequence[str]) -> RecordingPlan:
    from accord.trace.trace_file import now
    from accord_tools.tap.recorder_protocol import RecordingPlan

    largest = size_option("--trace-max-size", options.trace_max_size)
    kept = 0 if options.trace_keep is None else size_option("--trace-keep", options.trace_keep)
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
