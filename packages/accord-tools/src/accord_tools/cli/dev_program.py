"""The process that `accord dev` starts: it runs an author's program, and reports the author's mistakes.

    python -m accord_tools.cli.dev_program agent FILE.py [ARGUMENT...]
    python -m accord_tools.cli.dev_program client FILE.py [ARGUMENT...]

A `Mistake` is a line of standard error that begins with `MARK`; every other line is the program's own. Warnings and
errors that the library logs become mistakes: calls that are never awaited, and errors of the author's functions. So
does an error that prevents the file from being loaded. Tracebacks have the author's frames, without those of the
library.

A blocked event loop is detected from outside: a thread asks the loop for a sign of life, and if none comes in time, it
examines the main thread, twice. It reports a frame of the author that is there both times. What Accord does on the
author's behalf, such as starting a process, is never blamed, so a machine that is merely busy is not reported.
"""

from __future__ import annotations

import asyncio
import json
import linecache
import logging
import os
import sys
import sysconfig
import threading
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Literal, NamedTuple

import accord
from accord import program
from accord.agent_file import NoAgent, load_agent, split
from accord.mistakes import NOT_AWAITED, error_of_author, forgotten_awaits_are_logged

MARK = "accord dev: "
"""The beginning of the line of a mistake; the rest is JSON."""
LONGEST = 8_000
"""Characters of a mistake's text that are kept."""
PATIENCE = 0.25
"""Seconds without a sign of life after which an event loop is blocked."""
BETWEEN = 0.05
"""Seconds between a sign of life and the next question for one."""

_OURS = (f"{Path(accord.__file__).parent}{os.sep}", f"{Path(__file__).parents[1]}{os.sep}")
_LIBRARIES = (*_OURS, *(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib")))

Kind = Literal["never awaited", "blocked", "error", "warning", "hint"]


class Mistake(NamedTuple):
    """A mistake of the author."""

    kind: Kind
    title: str
    """The mistake, in one line."""
    details: str = ""
    """The place and the remedy: lines of text."""

    @classmethod
    def of_line(cls, line: str) -> Mistake | None:
        """Return the mistake that a line of standard error reports; None for every other line."""
        if not line.startswith(MARK):
            return None
        with suppress(ValueError, TypeError):  # a line of the program that only looks like one
            return cls(*json.loads(line.removeprefix(MARK)))
        return None

    def report(self) -> None:
        """Write the mistake to standard error."""
        text = json.dumps([self.kind, self.title[:LONGEST], self.details[-LONGEST:]])
        print(f"{MARK}{text}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Run a program, and return its exit code."""
    role, file, *given = arguments
    served: list[str] = []

    def watch(loop: asyncio.AbstractEventLoop, serves: str | None) -> None:
        if serves is not None:
            served.append(serves)
        LoopWatch(loop).start()

    program.loop_watchers.append(watch)
    logging.getLogger("accord").addFilter(_report_record)
    warnings.simplefilter("always", RuntimeWarning)  # also in the second turn that does not await
    with forgotten_awaits_are_logged():
        try:
            return _run(role, file, given, served)
        except Exception as error:
            what = "failed" if served or role == "client" else "cannot be loaded"
            mistake_of(error, f"{file} {what}").report()
            return 1


def _run(role: str, file: str, given: list[str], served: list[str]) -> int:
    """Run the program, and then its agent if the program has not; `served` fills with the agents that were run."""
    try:
        agent = load_agent(file, given)
    except NoAgent as error:
        if served or (role == "client" and Path(file).is_file()):  # the program has chosen one itself
            return 0
        Mistake("error", str(error)).report()
        return 2
    if role == "client" or served:
        return 0
    if agent is None:
        Mistake(
            "error", f"{file} has no agent", "Make one in a variable of the file: agent = accord.Agent('NAME')"
        ).report()
        return 2
    if split(file)[1] is None:
        last = "To start it with python, too, add as the last line: agent.run()"
        Mistake("hint", f"{file} does not run its agent", last).report()
    agent.run()
    return 0


def _report_record(record: logging.LogRecord) -> bool:
    """Report a warning or an error of the library; every other record continues to the handlers."""
    if record.levelno < logging.WARNING:
        return True
    message = record.getMessage()
    if record.exc_info and record.exc_info[1] is not None:
        what = message.partition(";")[0].removeprefix("the handler of ")
        mistake_of(record.exc_info[1], what).report()
    elif NOT_AWAITED in message:
        where, _, advice = message.rpartition(": write ")
        Mistake("never awaited", where, f"write {advice}").report()
    else:
        Mistake("error" if record.levelno >= logging.ERROR else "warning", message).report()
    return False


def mistake_of(error: BaseException, title: str) -> Mistake:
    """An error of an author's program: its cause in the title, and the author's frames below."""
    found = traceback.TracebackException(*error_of_author(error))
    _fold(found)
    *text, last = found.format_exception_only()
    if isinstance(error, SyntaxError):
        details = text  # the line, and where in it
    elif found.__cause__ or (found.__context__ and not found.__suppress_context__):
        details = list(found.format())
    else:
        details = [*found.stack.format(), *text]
    return Mistake("error", f"{title}: {last.strip().removeprefix('accord.mistakes.')}", "".join(details).rstrip())


def _fold(found: traceback.TracebackException) -> None:
    """Remove the library's frames from a traceback, and from those of its causes."""
    shown = [frame for frame in found.stack if not _is_library(frame.filename)]
    found.stack = traceback.StackSummary.from_list(shown)
    for cause in (found.__cause__, found.__context__):
        if cause is not None:
            _fold(cause)


def _is_library(file: str) -> bool:
    return file.startswith(("<frozen", "uvloop/", *_LIBRARIES))


class LoopWatch(threading.Thread):
    """Reports the code that blocks the event loop of the main thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(name="accord dev", daemon=True)
        self._loop = loop

    def run(self) -> None:
        """Watch until the loop is closed."""
        while True:
            alive = threading.Event()
            try:
                self._loop.call_soon_threadsafe(alive.set)
            except RuntimeError:  # it is closed
                return
            if not alive.wait(PATIENCE):
                first = _author_frame()
                if not alive.wait(PATIENCE) and first is not None and first is _author_frame():
                    _report_block(first)
                alive.wait()
            threading.Event().wait(BETWEEN)


def _author_frame() -> FrameType | None:
    """The innermost frame of the main thread that is not of a library; None if it has called Accord."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame = None if frame.f_code.co_filename.startswith(_OURS) else frame.f_back
    return frame


def _report_block(frame: FrameType) -> None:
    code, line = frame.f_code, frame.f_lineno
    written = linecache.getline(code.co_filename, line).strip()
    Mistake(
        "blocked",
        f"{code.co_filename}, line {line}, in {code.co_name}(): {written} blocks the event loop",
        "No session can go on meanwhile: await an async function, or use `await asyncio.to_thread(...)`",
    ).report()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
