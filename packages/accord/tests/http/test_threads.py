"""Event loops in several threads of one program: each connection gets its own bytes only."""

import asyncio
import importlib.util
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from accord.http import serving
from accord.transports.socket_buffers import SharedBufferProtocol
from tests.http.talking import WAYS, an_agent, editor_of, transport_to
from tests.waiting import DEADLINE

LOOPS = ["asyncio", "uvloop"]
LETTERS = "AB"

PER_LOOP = 64 * 1024 * 1024
"""Bytes that each loop receives: with a shared buffer half of them are the other loop's."""

TURNS, MESSAGES, SIZE = 40, 30, 4000


@pytest.fixture(params=LOOPS)
def new_loop(request):
    if request.param == "asyncio":
        return asyncio.new_event_loop
    if importlib.util.find_spec("uvloop") is None:
        pytest.skip("this test runs on uvloop, which is not for this platform")
    import uvloop

    return uvloop.new_event_loop


@pytest.fixture
def busy_switching():
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_two_threads(new_loop, main):
    """Run `main(letter)` for each letter, in a loop and a thread of its own; the results."""
    together = threading.Barrier(len(LETTERS), timeout=DEADLINE)

    def run(letter):
        together.wait()
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(main(letter))

    with ThreadPoolExecutor(len(LETTERS)) as pool:
        return list(pool.map(run, LETTERS))


class Counting(SharedBufferProtocol):
    """Counts the bytes that are not of its letter."""

    def __init__(self, letter):
        self.letter = letter.encode()
        self.foreign = 0
        self.over = asyncio.get_running_loop().create_future()

    def data_received(self, data):
        self.foreign += len(data) - data.count(self.letter)

    def connection_lost(self, exc):
        self.over.set_result(exc)


def test_loops_in_two_threads_receive_only_their_own_bytes(new_loop, busy_switching):
    async def receive(letter):
        loop = asyncio.get_running_loop()
        here, there = socket.socketpair()
        with there:
            _, counting = await loop.create_connection(lambda: Counting(letter), sock=here)
            sending = loop.run_in_executor(None, _send, there, letter.encode() * 65_536)
            async with asyncio.timeout(DEADLINE):
                await sending
                await counting.over
        return counting.foreign

    assert in_two_threads(new_loop, receive) == [0, 0]


def _send(there, data):
    for _ in range(PER_LOOP // len(data)):
        there.sendall(data)
    there.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("way", WAYS)
def test_turns_of_servers_in_two_threads_do_not_mix(new_loop, way, busy_switching):
    async def talk(letter, turns=TURNS):
        odd = 0
        async with serving(an_agent()) as server, editor_of(transport_to(server.url, way)) as editor:
            for _ in range(turns):
                session = await editor.open_session()
                await editor.prompt(session, " ".join([letter * SIZE] * MESSAGES))
                odd += editor.text(session) != f"{letter * SIZE} " * MESSAGES
        return odd

    asyncio.run(talk("W", turns=1))  # everything is loaded once, so that only the wire is shared
    assert in_two_threads(new_loop, talk) == [0, 0]
