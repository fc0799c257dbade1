"""The processes of a load run: client processes that do what they are told, servers, and what each has used."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.drive import resident


class Process:
    """A process that is told what to do, and answers."""

    def __init__(self, module: str, *arguments: str, under: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(
            [*under, sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def tell(self, *order: str | float) -> None:
        assert self._process.stdin is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)

    def line(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise SystemExit(f"{self._process.args!r} has ended with {self._process.wait()}")
        return line.strip()

    def told(self, *order: str | float) -> dict[str, Any]:
        """Tell it, if there is something to tell, and read its answer."""
        if order:
            self.tell(*order)
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    def end(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)
        with self._process:  # which closes its pipes and waits
            pass


@contextmanager
def process(module: str, *arguments: str, under: Sequence[str] = ()) -> Generator[Process]:
    """Run a module for as long as the block lasts; `under` is a command in front of Python's."""
    started = Process(module, *arguments, under=under)
    try:
        yield started
    finally:
        started.end()


def memory(of: Process) -> int:
    """Resident memory in KiB; 0 where the system does not tell."""
    told = resident(of.pid)
    return told["now"] if told else 0


def cpu_seconds(of: Process) -> float:
    """Processor time that a process has used so far; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{of.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def precise_cpu_seconds(of: Process) -> float:
    """The same from Linux's scheduler, to the nanosecond: for what takes less than a tick."""
    return int(Path(f"/proc/{of.pid}/schedstat").read_text().split()[0]) / 1e9
