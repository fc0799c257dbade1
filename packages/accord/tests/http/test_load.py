"""Load and faults: killed agents, stopped readers and broken TCP connections affect only their own connection."""

import asyncio
import json
import os
import re
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import accord
from accord.http import HttpTransport, serving
from accord.http.client import http2_client
from tests.http.counting import HERE
from tests.http.cutting import Cutter
from tests.http.talking import an_agent, editor_of, nobody_is_connected, transport_to
from tests.waiting import DEADLINE

ROOT = Path(__file__).parents[4]
PYTHON = sys.executable


def numbers(editor, session):
    return [int(text.split()[0]) for text in editor.heard.get(session, [])]


@asynccontextmanager
async def program(*command, **more):
    """A process that ends with the block."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, **more
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_many_connections_at_once_lose_nothing():
    command = [PYTHON, "-m", "benchmarks.load", "--json", "--sockets", "100", "--http2", "30", "--streaming", "20"]
    async with program(*command, "--hosted", "0", "--seconds", "1", "--rate", "20", cwd=ROOT) as load:
        said, _ = await load.communicate()
    assert load.returncode == 0
    runs = json.loads(said)
    assert [run["connections"] for run in runs] == [100, 30]
    assert [run["checked"] for run in runs] == [20 * 20, 15 * 20]
    assert [run["wrong"] for run in runs] == [0, 0]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are Unix's")
async def test_a_server_raises_its_limit_of_open_files():
    serve = (PYTHON, "-m", "accord", "serve", "--port", "0")
    async with program("sh", "-c", 'ulimit -S -n 64; exec "$@"', "sh", *serve) as server, asyncio.timeout(DEADLINE):
        port = int(re.search(rb"http://127.0.0.1:(\d+)", await server.stdout.readline())[1])
        clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        for reader, writer in clients:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        for _, writer in clients:
            writer.close()
            await writer.wait_closed()


# Agents that are killed


async def test_a_killed_agent_ends_only_its_own_connection(way, tmp_path):
    async with (
        serving([PYTHON, HERE, "agent", str(tmp_path / "progress")]) as server,
        editor_of(transport_to(server.url, way)) as victim,
        editor_of(transport_to(server.url, way)) as other,
    ):
        of_victim, of_other = await victim.open_session(), await other.open_session()
        await victim.prompt(of_victim, "who")
        agent = numbers(victim, of_victim).pop()
        victim.heard.clear()
        victim.first_words.clear()
        turns = [
            asyncio.create_task(victim.prompt(of_victim, "count 1000000 100")),
            asyncio.create_task(other.prompt(of_other, "count 3000 100")),
        ]
        await victim.first_words.wait()
        os.kill(agent, signal.SIGKILL)
        with pytest.raises(accord.ConnectionClosed) as told:
            await turns[0]
        assert told.value.reason == "peer_closed"
        assert "the agent's process ended (killed by signal 9)" in str(told.value)
        heard = numbers(victim, of_victim)
        assert heard == list(range(len(heard)))
        assert (await turns[1]).stop_reason == "end_turn"
        assert numbers(other, of_other) == list(range(3000))
        assert server.app.connections == 1


async def test_a_client_is_told_that_the_agent_cannot_be_started(way, caplog):
    async with serving(["/no/such/agent"]) as server:
        with pytest.raises(accord.AccordError, match="the agent could not be started"):
            async with editor_of(transport_to(server.url, way)):
                pass
    assert "/no/such/agent" in caplog.text  # for those who run it


# Readers that stop

IN_THE_SERVER = (PYTHON, HERE, "server")
IN_A_PROCESS = (PYTHON, "-m", "accord", "serve", "--port", "0", "--", PYTHON, HERE, "agent")

MESSAGES, SIZE = 500, 64 * 1024


@asynccontextmanager
async def remote(command, folder):
    """A server that is a process of its own, and how far its agent has come."""
    progress = folder / "progress"
    async with program(*command, str(progress)) as process, asyncio.timeout(DEADLINE):
        line = (await process.stdout.readline()).decode()
        yield Remote(process.pid, re.search(r"http://\S+", line)[0], progress)


class Remote:
    def __init__(self, pid, url, progress):
        self.url = url
        self._pid = pid
        self._progress = progress

    @property
    def sent(self):
        return self._progress.stat().st_size if self._progress.exists() else 0

    @property
    def peak(self):
        """The most memory that the server ever had, in bytes."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024


async def until_it_is_held_up(server, other):
    """Ask until another client's agent is paused; meanwhile we must be answered."""
    session = await other.open_session()
    sent, same = 0, 0
    while same < 50:
        await other.prompt(session, "hello")
        same = same + 1 if server.sent == sent > 0 else 0
        sent = server.sent
    assert sent < MESSAGES // 2
    await other.prompt(session, "count 200 10")
    assert numbers(other, session) == list(range(200))


@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's memory from /proc")
async def test_a_client_that_stops_reading_pauses_only_its_own_agent(way, tmp_path, monkeypatch):
    monkeypatch.setattr(http2_client, "STREAM_WINDOW", 16 * 1024)  # never acknowledged, while nothing is read
    async with remote(IN_THE_SERVER, tmp_path) as server:
        transport = transport_to(server.url, way)
        async with editor_of(transport) as stopped, editor_of(transport_to(server.url, way)) as other:
            session = await stopped.open_session()
            await stopped.prompt(session, "hello")
            before = server.peak
            transport.pause_reading()
            turn = asyncio.create_task(stopped.prompt(session, f"count {MESSAGES} {SIZE}"))
            await until_it_is_held_up(server, other)
            transport.resume_reading()
            assert (await turn).stop_reason == "end_turn"
            assert numbers(stopped, session) == list(range(MESSAGES))
            assert server.peak - before < MESSAGES * SIZE // 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's memory from /proc")
async def test_a_frozen_client_pauses_only_its_own_agent(way, tmp_path):
    async with (
        remote(IN_A_PROCESS, tmp_path) as server,
        editor_of(transport_to(server.url, way)) as other,
        program(PYTHON, HERE, "client", server.url, way, f"count {MESSAGES} {SIZE}") as frozen,
    ):
        assert await frozen.stdout.readline() == b"begun\n"
        frozen.send_signal(signal.SIGSTOP)
        before = server.peak
        try:
            await until_it_is_held_up(server, other)
        finally:
            frozen.send_signal(signal.SIGCONT)
        said, _ = await frozen.communicate()
        assert said.decode().split() == [*map(str, range(MESSAGES)), "end_turn"]
        assert server.peak - before < MESSAGES * SIZE // 2


# Wires that are cut


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("http2", [False, True])
async def test_broken_tcp_connections_lose_nothing_and_deliver_nothing_twice(http2, seed):
    """Whatever is on its way then: events, requests of both sides, their answers."""
    async with (
        serving(an_agent()) as server,
        Cutter.before(server.url, seed) as (cutter, url),
        editor_of(HttpTransport(url, http2=http2)) as editor,
    ):
        cutter.cutting = True
        sessions = [await editor.open_session() for _ in range(3)]
        turns = [asyncio.create_task(editor.prompt(session, "count 300")) for session in sessions]
        assert [(await turn).stop_reason for turn in turns] == ["end_turn"] * 3
        assert [numbers(editor, session) for session in sessions] == [list(range(300))] * 3
        editor.heard.clear()
        for _ in range(8):
            for session in sessions:
                await editor.prompt(session, "ask")
        assert [editor.text(session) for session in sessions] == ["allowed" * 8] * 3
        assert cutter.cuts > 3
        cutter.cutting = False


@pytest.mark.parametrize("seed", range(2))
async def test_a_websocket_that_is_cut_ends_at_a_whole_message(seed):
    async with (
        serving(an_agent()) as server,
        Cutter.before(server.url, seed) as (cutter, url),
        editor_of(transport_to(url, "websocket")) as editor,
    ):
        session = await editor.open_session()
        turn = asyncio.create_task(editor.prompt(session, "count 1000000"))
        await editor.first_words.wait()
        cutter.cutting = True
        with pytest.raises(accord.ConnectionClosed) as told:
            await turn
        assert told.value.reason == "broken"
        assert numbers(editor, session) == list(range(len(numbers(editor, session))))
        await nobody_is_connected(server)
