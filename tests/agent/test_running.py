"""`agent.run()`: a program of its own over its standard streams, and its end."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accord import Handlers, Peer, ProcessTransport, v1

AGENTS = Path(__file__).with_name("agents.py")
DEADLINE = 30


class Program:
    """An agent's process, driven by a client."""

    def __init__(self, peer, heard, stderr, transport):
        self.peer, self.heard, self.stderr, self.transport = peer, heard, stderr, transport

    @property
    def pid(self):
        return self.transport.pid

    async def open(self):
        return (await self.peer.request(v1.NewSessionRequest("/", []), timeout=DEADLINE)).session_id

    async def prompt(self, session, text):
        return await self.peer.request(v1.PromptRequest.of(session, text), timeout=DEADLINE)


@asynccontextmanager
async def running(name):
    handlers, heard, stderr = Handlers(), asyncio.Queue(), []
    handlers.on(v1.SessionNotification)(lambda notification: heard.put_nowait(notification.update))
    transport = ProcessTransport([sys.executable, str(AGENTS), name], on_stderr=stderr.append)
    async with Peer(transport, handlers, role="client") as peer:
        await peer.initialize(v1.InitializeRequest(1), timeout=DEADLINE)
        yield Program(peer, heard, stderr, transport)


async def test_an_agent_runs_as_a_program_and_what_it_prints_is_no_message():
    async with running("echo") as program:
        assert (await program.prompt(await program.open(), "hello")).stop_reason == "end_turn"
        assert (await program.heard.get()).content.text == "hello"
        end = await program.peer.connection.close()
    assert end.exit_code == 0
    assert any("this is no message" in line for line in program.stderr)
    assert program.peer.connection.pollution == []


async def test_when_the_client_goes_turns_are_stopped_and_sessions_freed():
    async with running("slow") as program:
        asking = asyncio.create_task(program.prompt(await program.open(), "go"))
        await asyncio.wait_for(program.heard.get(), DEADLINE)
        end = await program.peer.connection.close()
        await asyncio.wait([asking])
        asking.exception()
    assert end.exit_code == 0
    assert [line.strip() for line in program.stderr] == ["stopped", "freed"]


@pytest.fixture
def interruptible():
    """Programs that are started meanwhile can be interrupted: what a shell runs in the background ignores that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
async def test_a_signal_ends_an_agent_in_order_and_without_a_traceback(number, code):
    async with running("slow") as program:
        asking = asyncio.create_task(program.prompt(await program.open(), "go"))
        await asyncio.wait_for(program.heard.get(), DEADLINE)
        os.kill(program.pid, number)
        end = await program.peer.connection.closed()
        assert (await asking).stop_reason == "cancelled"
    assert end.exit_code == code
    assert [line.strip() for line in program.stderr] == ["stopped", "freed"]


def test_an_agent_with_nobody_at_the_other_end_ends_at_once():
    done = subprocess.run(
        [sys.executable, AGENTS, "echo"], check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_agent_that_answers_no_prompts_says_so_when_it_is_run():
    done = subprocess.run(
        [sys.executable, AGENTS, "mute"], check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE
    )
    assert done.returncode != 0
    assert b"@agent.on_prompt" in done.stderr
