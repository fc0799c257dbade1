"""What the transports' tests share: both event loops, a receiver that remembers, waiting with a deadline, no leaks."""

import asyncio
import contextlib
import gc
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.transports.process_transport import ProcessTransport
from tests.waiting import DEADLINE, eventually

MARK = "ACCORD_TEST_RUN"
"""An environment variable that everything a test starts inherits, so that whatever is left of it can be found."""


def pytest_asyncio_loop_factories():
    factories = {"asyncio": asyncio.new_event_loop}
    try:
        import uvloop
    except ImportError:
        return factories
    return factories | {"uvloop": uvloop.new_event_loop}


class Recorder:
    """A receiver that keeps all it is told, in order."""

    def __init__(self):
        self.batches = []
        self.events = []
        self.end = None
        self._changed = asyncio.Event()

    @property
    def frames(self):
        return [frame for batch in self.batches for frame in batch]

    def received(self, frames):
        assert frames, "an empty delivery"
        self.batches.append(list(frames))
        self._note("received")

    def paused(self):
        self._note("paused")

    def resumed(self):
        self._note("resumed")

    def ended(self, end):
        assert self.end is None, "ended twice"
        self.end = end
        self._note("ended")

    def _note(self, event):
        assert event == "ended" or "ended" not in self.events or event == "resumed", f"{event} after the end"
        self.events.append(event)
        self._changed.set()

    async def until(self, condition: Callable[["Recorder"], object]):
        """Wait for `condition`, looked at whenever something was received."""
        async with asyncio.timeout(DEADLINE):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()

    async def has(self, *frames):
        await self.until(lambda it: len(it.frames) >= len(frames))
        assert self.frames == list(frames)

    async def has_ended(self):
        await self.until(lambda it: it.end is not None)
        return self.end


@pytest.fixture
def recorder():
    return Recorder


def _descriptors():
    """The open descriptors and what they are; without the number, as an event loop may replace its own sockets."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found[int(entry.name)] = str(entry.readlink()).partition(":[")[0]
    return {fd: target for fd, target in found.items() if not target.endswith("/fd")}


def _left_of(run):
    """Who was started during this test and still lives: pid and command line."""
    mark = f"{MARK}={run}".encode()
    left = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdecimal() and mark in (process / "environ").read_bytes().split(b"\0"):
                left.append((int(process.name), (process / "cmdline").read_bytes()))
        except OSError:
            continue
    return left


@pytest.fixture
def run(monkeypatch):
    """This test's own mark."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    return mark


@pytest.fixture
def started(run):
    """Who was started during this test and lives, as pids; with a word, only those whose command line has it."""
    return lambda word="": {pid for pid, command in _left_of(run) if word.encode() in command}


@pytest.fixture(autouse=True)
async def nothing_is_left(run):
    """No descriptor, thread, task or process outlives the test that it belongs to, and no error goes unseen."""
    errors = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    descriptors, threads, tasks = _descriptors(), set(threading.enumerate()), asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() - {asyncio.current_task()} <= tasks
    assert set(threading.enumerate()) <= threads
    assert _descriptors() == descriptors
    await eventually(lambda: not _left_of(run))
    gc.collect()  # finds what nobody awaited
    gc.freeze()
    assert not errors


@pytest.fixture
async def start(recorder):
    """Starts a command as an agent's process; gives the transport and who receives from it."""
    transports = []

    async def start(command, **options):
        transport = ProcessTransport(command, **options)
        receiver = recorder()
        await transport.start(receiver)
        transports.append(transport)
        return transport, receiver

    yield start
    await asyncio.gather(*(transport.close(grace=0.2) for transport in transports))
