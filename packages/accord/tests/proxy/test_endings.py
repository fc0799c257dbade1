"""How a chain ends: whatever dies, each request is answered, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from accord.jsonrpc.chunked_decode import peek
from accord.proxy.chain import conduct
from accord.testing import ScriptedPeer
from accord.transports import Target
from accord.transports.memory_transport import pair
from accord.transports.process_transport import ProcessTransport
from accord.transports.stdio_transport import StdioTransport
from tests.proxy.conftest import CONDUCT
from tests.waiting import DEADLINE, eventually

PROMPT = {"sessionId": "s", "prompt": []}

DIES = """
import sys
for line in sys.stdin:
    if '"initialize"' in line:
        number = line.split('"id":')[1].split(",")[0]
        print('{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}' % number, flush=True)
    else:
        print("out of memory", file=sys.stderr)
        sys.exit(3)
"""


async def test_an_agent_that_ends_in_a_prompt_leaves_no_request_open(chain):
    line = await chain(1)
    client, proxy, agent = line.client, line.proxies[0], line.agent
    prompt = client.call("session/prompt", PROMPT)
    at_proxy = await proxy.expect("session/prompt")
    forwarded = proxy.wrapped("session/prompt", PROMPT)
    await agent.expect("session/prompt")
    await agent.close()
    error = await proxy.expect_error(forwarded, -32603)
    assert error["data"]["component"].startswith("the agent (")
    later = proxy.wrapped("_x/later", {}, id="later")
    assert (await proxy.expect_error(later, -32603))["data"]["component"] == error["data"]["component"]
    proxy.error(at_proxy, error["code"], error["message"], error["data"])
    assert (await client.expect_error(prompt))["data"] == error["data"]
    await client.expect_end()


async def test_a_proxy_that_ends_leaves_no_request_open(chain):
    line = await chain(2)
    client, (first, second) = line.client, line.proxies
    prompt = client.call("session/prompt", PROMPT)
    await first.expect("session/prompt")
    first.wrapped("session/prompt", PROMPT)
    await second.expect("session/prompt")
    await first.close()
    error = await client.expect_error(prompt, -32603)
    assert error["data"]["component"].startswith("proxy 1 (")
    await client.expect_end()


async def test_the_requests_of_a_component_that_ended_are_cancelled(chain):
    line = await chain(0)
    line.agent.call("session/request_permission", {"sessionId": "s"})
    asked = await line.client.expect("session/request_permission")
    await line.agent.close()
    assert (await line.client.expect("$/cancel_request"))["params"] == {"requestId": asked["id"]}


async def test_a_request_that_the_other_components_never_answer_gets_the_failure(chain):
    line = await chain(1)
    prompt = line.client.call("session/prompt", PROMPT)
    await line.proxies[0].expect("session/prompt")  # and nothing more
    await line.agent.close()
    error = await line.client.expect_error(prompt, -32603)
    assert error["data"]["component"].startswith("the agent (")
    await line.client.expect_end()


async def test_the_last_answer_of_an_agent_that_ends_arrives(chain):
    line = await chain(0)
    prompt = line.client.call("session/prompt", PROMPT)
    line.agent.answer(await line.agent.expect("session/prompt"), {"stopReason": "end_turn"})
    await line.agent.close()
    assert await line.client.expect_result(prompt) == {"stopReason": "end_turn"}
    await line.client.expect_end()


async def test_all_components_end_when_the_client_leaves(chain):
    line = await chain(2)
    await line.client.close()
    for script in line.scripts:
        await script.expect_end()


# The command


class Conducted:
    """`accord conduct` with commands as components, and a script as the client."""

    def __init__(self, *components, options=()):
        self.transport = ProcessTransport([*CONDUCT, *options, *components])
        self.client = ScriptedPeer(self.transport, deadline=DEADLINE)

    async def __aenter__(self):
        await self.client.open()
        return self

    async def __aexit__(self, *_):
        await self.client.close()


def python(code):
    return shlex.join([sys.executable, "-c", code])


async def test_the_failure_has_the_exit_code_and_the_last_words():
    async with Conducted(python(DIES)) as conducted:
        client = conducted.client
        await client.request("initialize", {"protocolVersion": 1})
        error = await client.expect_error(client.call("session/prompt", PROMPT), -32603)
        end = await client.expect_end()
    assert error["data"]["exitCode"] == 3
    assert error["data"]["stderr"] == "out of memory\n"
    assert "its process ended (exit code 3): out of memory" in error["message"]
    assert end.exit_code == 1
    lines = end.stderr.splitlines()
    assert lines[0] == "agent: out of memory"
    assert len(lines) == 2
    assert lines[1].startswith("accord conduct: the agent (")


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_component_that_cannot_be_started_answers_initialize(place):
    good = python("import sys; sys.stdin.read()")
    components = [good, good, good]
    components[place] = "no-such-program --flag"
    async with Conducted(*components) as conducted:
        client = conducted.client
        error = await client.expect_error(client.call("initialize", {"protocolVersion": 1}), -32603)
        end = await client.expect_end()
    assert "no-such-program" in error["data"]["component"]
    assert "command not found" in error["message"]
    assert end.exit_code == 1
    assert len(end.stderr.splitlines()) == 1


async def test_the_failure_says_what_a_program_printed_that_speaks_no_protocol():
    async with Conducted(python("print('Usage: agent --acp')")) as conducted:
        error = await conducted.client.expect_error(conducted.client.call("initialize", {"protocolVersion": 1}))
        assert "Usage: agent --acp" in error["message"]


async def test_a_client_that_leaves_ends_the_command_well():
    async with Conducted(python(DIES)) as conducted:
        await conducted.client.request("initialize", {"protocolVersion": 1})
        end = await conducted.client.close()
    assert end.exit_code == 0
    assert end.stderr == ""


async def test_what_the_client_asked_before_it_left_is_answered():
    slow = python(
        "import sys\n"
        "def answer(line):\n"
        " number = line.split('\"id\":')[1].split(',')[0]\n"
        ' print(\'{"jsonrpc":"2.0","id":%s,"result":{}}\' % number, flush=True)\n'
        "answer(sys.stdin.readline())\n"
        "late = sys.stdin.readline()\n"
        "sys.stdin.read()\n"  # to its end: the client has left
        "answer(late)"
    )
    process = await asyncio.create_subprocess_exec(
        *CONDUCT, "--no-bridge", slow, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    process.stdin.write(b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}\n')
    assert await process.stdout.readline() == b'{"jsonrpc":"2.0","id":7,"result":{}}\n'
    out, _ = await process.communicate(b'{"jsonrpc":"2.0","id":8,"method":"session/new","params":{}}\n')
    assert out == b'{"jsonrpc":"2.0","id":8,"result":{}}\n'
    assert process.returncode == 0


class Deaf(Target):
    """An agent that answers `initialize` and then reads no more."""

    name = program = "deaf"

    def dial(self):
        here, self.there = pair()
        asyncio.get_running_loop().create_task(self.there.start(self))
        return here

    def received(self, frames):
        self.there.send([b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":1}}' % peek(frames[0]).id])
        self.there.pause_reading()
        self.answered.set()

    def paused(self): ...

    def resumed(self): ...

    def ended(self, end): ...


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of it without reading")
async def test_a_client_that_leaves_is_noticed_behind_an_agent_that_does_not_read():
    (reads, writes), (client_reads, client_writes) = os.pipe(), os.pipe()
    deaf = Deaf()
    deaf.answered = asyncio.Event()
    conducting = asyncio.create_task(conduct([deaf], StdioTransport(reads, client_writes)))
    os.write(writes, b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
    await deaf.answered.wait()
    os.set_blocking(writes, False)
    refusals = 0
    while refusals < 100:  # turns of the loop in which it takes nothing
        try:
            os.write(writes, b'{"jsonrpc":"2.0","method":"_x","params":{"x":"' + b"x" * 4000 + b'"}}\n')
            refusals = 0
        except BlockingIOError:
            refusals += 1
            await asyncio.sleep(0)
    assert not conducting.done()
    os.close(writes)
    os.close(client_reads)
    async with asyncio.timeout(DEADLINE):
        assert await conducting is None
    await deaf.there.close()


STUBBORN = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
while True:
    time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_no_component_outlives_a_command_that_is_told_to_end(tmp_path, how):
    files = [tmp_path / "proxy", tmp_path / "agent"]
    components = [shlex.join([sys.executable, "-c", STUBBORN, str(file)]) for file in files]
    async with Conducted(*components) as conducted:
        conducted.client.call("initialize", {"protocolVersion": 1})
        await eventually(lambda: all(file.exists() and file.read_text() for file in files))
        pids = [int(file.read_text()) for file in files]
        assert conducted.transport.pid is not None
        os.kill(conducted.transport.pid, how)
        end = await conducted.client.transport.close() if how == signal.SIGKILL else await ended(conducted)
        assert end.exit_code == (143 if how == signal.SIGTERM else -9)
        await eventually(lambda: not any(lives(pid) for pid in pids))


async def ended(conducted):
    await eventually(lambda: conducted.client.end is not None)
    return conducted.client.end


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
