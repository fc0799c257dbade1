"""Stands between a client and an agent, hands everything on as it is, and writes it down: a trace for each run.

python tap.py FOLDER COMMAND ...    the agent, as the client's command for it

It ends when the agent ends, with its exit code; a client that terminates it has terminated the agent.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import IO, Any

from accord.trace import IN, OUT, Direction, TraceEvent, TraceFile, read


def tap(folder: Path, command: Sequence[str]) -> int:
    trace = TraceFile(folder / f"{len(runs(folder))}.jsonl", role="agent")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin
        assert agent.stdout
        signal.signal(signal.SIGTERM, lambda _number, _frame: agent.terminate())
        # The client may hold its end open after the agent has gone, so nobody waits for this one.
        Thread(target=copy, args=(sys.stdin.buffer, agent.stdin, IN, trace), daemon=True).start()
        copy(agent.stdout, sys.stdout.buffer, OUT, trace)
        return agent.wait()


def copy(source: IO[bytes], target: IO[bytes], direction: Direction, trace: TraceFile) -> None:
    """Line by line until one of the two is closed; written down before it is handed on."""
    try:
        for line in source:
            trace(TraceEvent(time.monotonic(), direction, line))
            target.write(line)
            target.flush()
        target.close()
    except (BrokenPipeError, ValueError):  # the agent or the client is gone
        pass


def tapped(folder: Path, agent: Sequence[str]) -> list[str]:
    """The command for this agent, that writes its runs into this folder."""
    folder.mkdir(exist_ok=True)
    return [sys.executable, __file__, str(folder), *agent]


def runs(folder: Path) -> list[list[tuple[Direction, Any]]]:
    """What was said in each run until now: `in` to the agent, `out` by it."""
    return [
        [(event.direction, json.loads(event.frame)) for event in read(folder / f"{number}.jsonl") if event.frame]
        for number in range(len(list(folder.glob("*.jsonl"))))
    ]


if __name__ == "__main__":
    code = tap(Path(sys.argv[1]), sys.argv[2:])
    os._exit(code if code >= 0 else 128 - code)  # at once, although a thread still reads standard input
