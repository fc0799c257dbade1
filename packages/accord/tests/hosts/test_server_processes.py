"""`accord serve --processes`: one port, several processes."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from accord import v1
from accord.http.client.connection_pool import ConnectionPool
from tests.hosts.hosting import editor_on
from tests.http.processes import accord_once, serving_process
from tests.waiting import DEADLINE

AGENT = [sys.executable, "-c", "from accord_tools.demo import demo_agent; demo_agent(pace=0).run()"]


def children(process):
    """The processes of a server."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in listed.split()]


async def until(what):
    """Wait until this is so."""
    async with asyncio.timeout(DEADLINE):
        while not what():  # noqa: ASYNC110 - a process has no event for us
            await asyncio.sleep(0.02)


pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc"),
    pytest.mark.usefixtures("fresh_programs"),  # a fork has a fork server of its own, which would be a child, too
]


async def test_several_processes_serve_one_port():
    async with serving_process("--processes", "3", "--", *AGENT) as (process, url):
        await until(lambda: len(children(process)) == 3)
        for way in ("http1", "http2", "websocket"):
            async with editor_on(url, way) as editor:
                session = await editor.open_session()
                assert (await editor.prompt(session, "hello")).stop_reason == "end_turn"
                assert editor.text(session)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def test_a_process_that_is_killed_is_started_again():
    async with serving_process("--processes", "2", stderr=asyncio.subprocess.PIPE) as (process, url):
        await until(lambda: len(children(process)) == 2)
        before = children(process)
        os.kill(before[0], signal.SIGKILL)
        async with asyncio.timeout(DEADLINE):
            while b"killed by signal 9); another one is started" not in (line := await process.stderr.readline()):
                assert line, "the server has ended"
        await until(lambda: len(children(process)) == 2 and before[0] not in children(process))
        async with editor_on(url) as editor:
            assert await editor.open_session()


async def test_the_processes_end_when_their_parent_is_killed():
    async with serving_process("--processes", "2") as (process, _):
        await until(lambda: len(children(process)) == 2)
        left = children(process)
        process.kill()
        await process.wait()
        await until(lambda: not any(Path(f"/proc/{pid}/fd/0").exists() for pid in left))


async def test_the_figures_of_all_processes_are_told_by_each():
    async with serving_process("--processes", "2", "--metrics", "--", *AGENT) as (process, url):
        await until(lambda: len(children(process)) == 2)
        async with editor_on(url) as one, editor_on(url) as two:
            await one.open_session()
            await two.open_session()
            told = await figures(url, lambda text: len(samples(text, "accord_connections")) == 2)
    assert told.count("# TYPE accord_connections gauge") == 1
    assert sum(map(float, samples(told, "accord_connections"))) == 2


def samples(text, name):
    """The values of one figure, of whichever process."""
    return [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(f"{name}{{host=")]


async def figures(url, are_there):
    """The figures that a process tells, when all processes have found each other."""
    async with asyncio.timeout(DEADLINE):
        while True:
            asking = ConnectionPool(url.replace("/acp", "/metrics"), http2=False)
            try:
                text = (await (await asking.request("GET", [])).body(1 << 20)).decode()
            finally:
                await asking.close()
            if are_there(text):
                return text
            await asyncio.sleep(0.05)


async def test_all_processes_see_the_sessions_of_one_store(tmp_path):
    store = str(tmp_path / "sessions.sqlite3")
    async with serving_process("--processes", "2", "--store", store, "--", *AGENT) as (_, url):
        async with editor_on(url) as editor:
            session = await editor.open_session()
            await editor.prompt(session, "hello")
            heard = editor.text(session)
        async with editor_on(url) as editor:
            await editor.request(v1.LoadSessionRequest(session, "/project", []), timeout=DEADLINE)
            assert editor.text(session) == heard


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--processes", "none"), "--processes must be a number from 1 to 256, got 'none'"),
        (("--processes", "2", "--trace", "t.jsonl"), "--trace is for one process"),
        (("--peer", "127.0.0.1:1"), "--peer requires --hosts"),
        (("--hosts", "postgresql://db/accord"), "requires --hosts-key-file"),
        (("--hosts", "h.sqlite3", "--hosts-key-file", "missing"), "cannot be read"),
        (("--hosts", "h.sqlite3", "--peer", "nowhere"), "10.0.3.7:8100"),
        (("--hosts", "h.sqlite3", "--peer-ca", "ca.pem"), "--peer-ca requires --peer-certificate"),
        (("--peer-certificate", "peer.pem"), "--peer-certificate requires --hosts"),
    ],
)
def test_wrong_options_are_explained(arguments, problem):
    done = accord_once("serve", *arguments)
    assert done.returncode == 2
    assert problem in done.stderr


def test_a_first_process_that_cannot_start_ends_the_server(tmp_path):
    done = accord_once("serve", "--processes", "2", "--port", "0", "--certificate", str(tmp_path / "missing.pem"))
    assert done.returncode == 1
    assert done.stderr.count("cannot use the certificate") == 1


async def test_a_process_that_fails_says_why_and_its_program_ends_with_1():
    program = "import accord.hosts\ndef run(listening, ready): raise OSError('no disk')\n"
    program += "exit(accord.hosts.run_processes(2, run, port=0))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode == 1
    assert b"a process of the server has failed" in said
    assert b"OSError: no disk" in said
