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
from tests.waiting import DEADLINE, eventually

AGENTS = Path(__file__).with_name("agents.py")


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
async def running(name, grace=2.0, **env):
    handlers, heard, stderr = Handlers(), asyncio.Queue(), []
    handlers.on(v1.SessionNotification)(lambda notification: heard.put_nowait(notification.update))
    command = [sys.executable, str(AGENTS), name]
    transport = ProcessTransport(command, on_stderr=stderr.append, env=env, grace=grace)
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


# Turns that do not end


PATIENT = 1000.0
"""Seconds that a client gives an agent to end by itself: the agent has to do it, not the client's SIGKILL."""


@asynccontextmanager
async def lingering(what, **env):
    """An agent whose turn does not end when it is cancelled."""
    async with running("lingering", grace=PATIENT, **env) as program:
        session = await program.open()
        asking = asyncio.create_task(program.prompt(session, what))
        await eventually(lambda: "stuck" in program.stderr)
        yield program, session
        await asyncio.wait([asking])
        asking.exception()


def last_word(program):
    """The last line on standard error, which says why the agent ended by force."""
    return program.stderr[-1]


@pytest.mark.parametrize(
    ("what", "held_by"),
    [
        ("swallow", "task 'session/prompt in session {}' (in swallow_cancellation, "),
        ("thread", "(in sit_in_a_thread, "),
    ],
)
async def test_an_agent_ends_when_its_client_goes_although_a_turn_does_not(what, held_by):
    async with lingering(what) as (program, session):
        end = await program.transport.close(grace=PATIENT)
        assert end.exit_code == 0
        assert "lingering: ended by force, 3 seconds after it had stopped serving" in last_word(program)
        assert held_by.format(session) in last_word(program)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize(
    ("what", "held_by"),
    [
        ("swallow", "task 'session/prompt in session {}' (in swallow_cancellation, "),
        ("thread", "(in sit_in_a_thread, "),
        ("block", "because of the main thread (in sit_in_a_thread, "),
    ],
)
async def test_sigterm_ends_an_agent_although_a_turn_does_not_end(what, held_by):
    async with lingering(what) as (program, session):
        os.kill(program.pid, signal.SIGTERM)
        end = await program.peer.connection.closed()
        assert end.exit_code == 143
        assert "lingering: ended by force, 3 seconds after" in last_word(program)
        assert held_by.format(session) in last_word(program)


async def test_an_agent_that_ends_by_force_has_kept_its_sessions(tmp_path):
    path = tmp_path / "store.db"
    async with lingering("swallow", AGENTS_STORE=str(path)) as (program, session):
        await program.transport.close(grace=PATIENT)
        assert "ended by force" in last_word(program)
    async with running("lingering", AGENTS_STORE=str(path)) as program:
        await program.peer.request(v1.LoadSessionRequest(session, "/", []), timeout=DEADLINE)
        updates = [program.heard.get_nowait() for _ in range(program.heard.qsize())]
        said = [it.content.text for it in updates if isinstance(it, v1.UserMessageChunk | v1.AgentMessageChunk)]
        assert said == ["swallow", "working"]


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
