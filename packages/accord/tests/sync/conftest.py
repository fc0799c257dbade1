"""An agent that starts quickly, programs that use it, and a check that nothing is left."""

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
import uuid
from pathlib import Path

import pytest

from accord.program import loop_factory
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401 - fixtures
from tests.transports.conftest import MARK, _descriptors, _left_of
from tests.waiting import DEADLINE, wait_until

HEAD = """
import os, signal, sys, threading, accord
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background of a shell ignores Ctrl-C
"""
AGENT = Path(__file__).with_name("quick_agent.py")


@pytest.fixture(scope="session", autouse=True)
def event_loops_were_used():
    """The first loop of libuv in a process makes a pipe that all loops share, and that stays."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.get_loop()


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch):
    """No thread, descriptor or process outlives its test."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    threads, descriptors = set(threading.enumerate()), _descriptors()
    yield
    wait_until(lambda: set(threading.enumerate()) <= threads)
    wait_until(lambda: _descriptors().keys() <= descriptors.keys())
    wait_until(lambda: not _left_of(mark))


class QuickAgent:
    """The command of an agent, and what it has noted."""

    def __init__(self, file: Path, way: str = "") -> None:
        self.file = file
        self.command = [sys.executable, "-I", "-S", str(AGENT), str(file), way]

    @property
    def notes(self):
        return self.file.read_text().splitlines() if self.file.exists() else []

    def wait_for(self, note):
        wait_until(lambda: note in self.notes)

    @property
    def pid(self):
        return int(self.notes[0])


@pytest.fixture
def quick_agent(tmp_path):
    """Makes an agent; each has its own file of notes."""
    return lambda way="": QuickAgent(tmp_path / f"notes-{uuid.uuid4().hex}", way)


@pytest.fixture
def program(tmp_path):
    """Starts a Python program that gets the agent's command as `AGENT`; its standard input is a pipe."""
    started = []

    def start(code, agent=None, *options):
        head = HEAD + (f"AGENT = {agent.command!r}\n" if agent else "")
        path = tmp_path / f"program-{len(started)}.py"
        path.write_text(head + textwrap.dedent(code))
        process = subprocess.Popen(
            [sys.executable, *options, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=DEADLINE)
