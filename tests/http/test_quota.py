"""What clients can make a server start and keep: agent processes, and bodies that wait for them."""

import asyncio
import json
import sys

import pytest

import accord
from accord.http import Access, ServerLimits, serving
from tests.http.processes import ACCORD
from tests.http.talking import DEADLINE, WAYS, an_agent, editor_of, transport_to
from tests.http.test_connections import INITIALIZE, a_line, post

DEAF = """
import json, sys
asked = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": 1}}), flush=True)
__import__("threading").Event().wait()
"""

DEMO = [*ACCORD, "demo"]


def as_(token):
    return {"headers": {"Authorization": f"Bearer {token}"}}


@pytest.mark.parametrize("way", WAYS)
async def test_an_owner_has_no_more_processes_than_it_may_have(way):
    access, limits = Access({"a": "ada", "b": "bob"}), ServerLimits(owner_processes=1)
    async with serving(DEMO, access=access, limits=limits) as server, asyncio.timeout(2 * DEADLINE):
        async with editor_of(transport_to(server.url, way, **as_("a"))) as ada:
            with pytest.raises(accord.AccordError, match="429"):
                async with editor_of(transport_to(server.url, way, **as_("a"))):
                    pass
            async with editor_of(transport_to(server.url, way, **as_("b"))) as bob:
                assert await bob.open_session()
            assert await ada.open_session()
        while server.app.connections:  # noqa: ASYNC110 - an application has no event for it
            await asyncio.sleep(0)
        await server.app._tasks.end(DEADLINE)
        async with editor_of(transport_to(server.url, way, **as_("a"))) as again:
            assert await again.open_session()


async def test_a_server_has_no_more_processes_than_it_may_have():
    limits = ServerLimits(processes=1)
    async with serving(DEMO, limits=limits) as server, editor_of(transport_to(server.url, "http1")):
        with pytest.raises(accord.AccordError, match="503"):
            async with editor_of(transport_to(server.url, "http1")):
                pass


async def test_an_agent_of_this_program_needs_no_process():
    limits = ServerLimits(processes=1, owner_processes=1)
    async with (
        serving(an_agent(), limits=limits) as server,
        editor_of(transport_to(server.url, "http1")),
        editor_of(transport_to(server.url, "http1")) as second,
    ):
        assert await second.open_session()


async def test_bodies_that_wait_for_a_deaf_agent_have_a_bound():
    limits = ServerLimits(waiting=3_000_000)
    body = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"a": "y" * 1_000_000}}).encode()
    async with (
        serving([sys.executable, "-c", DEAF], limits=limits) as server,
        a_line(server) as first,
        asyncio.timeout(2 * DEADLINE),
    ):
        await first.send(post(INITIALIZE))
        identity = b"Acp-Connection-Id: " + (await first.answer())[1]["acp-connection-id"].encode()
        (link,) = server.app._links.values()
        lines, answers = [], []
        for _ in range(40):
            lines.append(line := await a_line(server).__aenter__())
            await line.send(post(body, identity))
            answers.append(asyncio.ensure_future(line.answer()))
        while not any(answer.done() and answer.result()[0] == 429 for answer in answers):
            await asyncio.wait([answer for answer in answers if not answer.done()], return_when=asyncio.FIRST_COMPLETED)
        assert link._waiting.size <= limits.waiting
        for answer, line in zip(answers, lines, strict=True):
            answer.cancel()
            line.writer.transport.abort()
        await asyncio.gather(*answers, return_exceptions=True)


async def test_bodies_that_arrive_have_a_bound_together():
    async with serving(an_agent(), limits=ServerLimits(bodies=1_000_000)) as server, asyncio.timeout(2 * DEADLINE):
        async with a_line(server) as slow, a_line(server) as other:
            await slow.send(post(b"x" * 900_000)[:-1])
            while server.app._bodies.size < 890_000:  # noqa: ASYNC110 - an application has no event for it
                await asyncio.sleep(0)
            await other.send(post(b"x" * 200_000))
            status, fields, _ = await other.answer()
            assert (status, fields["retry-after"]) == (503, "5")
            await slow.send(b"x")
            assert (await slow.answer())[0] == 400
        assert server.app._bodies.size == 0
