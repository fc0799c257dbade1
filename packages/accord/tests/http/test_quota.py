"""What clients can make a server start and keep: agent processes, and bodies that wait for them."""

import asyncio
import gc
import json
import sys

import pytest

import accord
from accord.http import Access, ServerLimits, serving
from accord.http.server import request_body
from accord.http.server.request_body import RequestBody
from tests.http.processes import ACCORD
from tests.http.talking import WAYS, an_agent, editor_of, transport_to
from tests.http.test_connections import INITIALIZE, a_line, post
from tests.waiting import DEADLINE

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
            async with editor_of(transport_to(server.url, "http1", reconnect_within=0)):
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
        assert link._waiting <= limits.waiting
        for answer, line in zip(answers, lines, strict=True):
            answer.cancel()
            line.writer.transport.abort()
        await asyncio.gather(*answers, return_exceptions=True)


async def test_a_body_waits_unread_until_others_leave_room_for_it():
    async with (
        serving(an_agent(), limits=ServerLimits(bodies=1_000_000)) as server,
        a_line(server) as slow,
        a_line(server) as other,
        asyncio.timeout(2 * DEADLINE),
    ):
        await slow.send(post(b"x" * 900_000)[:-1])
        await until(lambda: server.app._bodies.size == 900_000)
        await other.send(post(b"x" * 200_000))
        await until(lambda: server.app._bodies.waiting == 1)
        await slow.send(b"x")
        assert (await slow.answer())[0] == 400
        assert (await other.answer())[0] == 400
        assert server.app._bodies.size == 0


async def test_a_body_for_which_no_room_comes_is_refused_and_may_be_repeated():
    limits = ServerLimits(bodies=1_000_000, arrival=0.2)
    async with (
        serving(an_agent(), limits=limits) as server,
        a_line(server) as slow,
        a_line(server) as other,
        asyncio.timeout(2 * DEADLINE),
    ):
        await slow.send(post(b"x" * 900_000)[:-1])
        await until(lambda: server.app._bodies.size == 900_000)
        await other.send(post(b"x" * 200_000))
        status, fields, _ = await other.answer()
        assert (status, fields["retry-after"]) == (503, "5")


async def test_a_body_that_arrives_slowly_gives_way_to_one_that_waits(monkeypatch):
    monkeypatch.setattr(request_body, "HELD", 0.0)
    async with (
        serving(an_agent(), limits=ServerLimits(bodies=1_000_000)) as server,
        a_line(server) as slow,
        a_line(server) as other,
        asyncio.timeout(2 * DEADLINE),
    ):
        await slow.send(post(b"x" * 900_000)[:-1])
        await until(lambda: server.app._bodies.size == 900_000)
        await other.send(post(b"x" * 200_000))
        status, fields, _ = await slow.answer()
        assert (status, fields["retry-after"]) == (503, "5")
        assert (await other.answer())[0] == 400
        assert server.app._bodies.size == 0


async def test_a_body_that_waits_for_a_deaf_agent_gives_way_to_other_clients(monkeypatch):
    body = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"a": "y" * 1_500_000}}).encode()
    async with (
        serving([sys.executable, "-c", DEAF], limits=ServerLimits(bodies=3_000_000, opening=3_000_000)) as server,
        a_line(server) as first,
        a_line(server) as second,
        a_line(server) as other,
        asyncio.timeout(2 * DEADLINE),
    ):
        await first.send(post(INITIALIZE))
        identity = b"Acp-Connection-Id: " + (await first.answer())[1]["acp-connection-id"].encode()
        (link,) = server.app._links.values()
        await first.send(post(body, identity))
        assert (await first.answer())[0] == 202
        await second.send(post(body, identity))
        await until(lambda: link._waiting == len(body))
        monkeypatch.setattr(request_body, "HELD", 0.0)
        await other.send(post(b"x" * 2_000_000))
        assert (await second.answer())[0] == 503
        assert (await other.answer())[0] == 400
        assert server.app._bodies.size == 0


async def test_small_bodies_pass_while_large_ones_take_all_room():
    async with (
        serving(an_agent(), limits=ServerLimits(bodies=1_000_000)) as server,
        a_line(server) as slow,
        a_line(server) as small,
        asyncio.timeout(2 * DEADLINE),
    ):
        await slow.send(post(b"x" * 1_000_000)[:-1])
        await until(lambda: server.app._bodies.size == 1_000_000)
        await small.send(post(INITIALIZE))
        assert (await small.answer())[0] == 200


async def test_a_body_without_a_length_takes_room_for_the_largest_until_it_is_read():
    limits = ServerLimits(bodies=1_000_000, body=700_000)
    async with serving(an_agent(), limits=limits) as server, asyncio.timeout(2 * DEADLINE):
        async with a_line(server) as line:
            await line.send(post(b"1\r\nx\r\n", b"Transfer-Encoding: chunked", length=False))
            await until(lambda: server.app._bodies.size == 700_000)
            await line.send(b"0\r\n\r\n")
            assert (await line.answer())[0] == 400
        assert server.app._bodies.size == 0


async def test_a_refused_body_is_freed_without_the_garbage_collector(monkeypatch):
    monkeypatch.setattr(request_body, "HELD", 0.0)
    limits = ServerLimits(waiting=1_000_000, bodies=3_000_000, opening=3_000_000)
    body = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"a": "y" * 800_000}}).encode()
    async with (
        serving([sys.executable, "-c", DEAF], limits=limits) as server,
        a_line(server) as first,
        a_line(server) as other,
        asyncio.timeout(2 * DEADLINE),
    ):
        await first.send(post(INITIALIZE))
        identity = b"Acp-Connection-Id: " + (await first.answer())[1]["acp-connection-id"].encode()
        lines, answers = [], []
        gc.collect()
        gc.disable()
        try:
            for _ in range(12):
                lines.append(line := await a_line(server).__aenter__())
                await line.send(post(body, identity))
                answers.append(asyncio.ensure_future(line.answer()))
            await until(lambda: sum(one.done() for one in answers) == len(lines) - 1)
            await other.send(post(b"x" * 3_000_000))  # the last one has to give way to this
            assert (await other.answer())[0] == 400
            assert {(await one)[0] for one in answers} == {202, 429, 503}
            await until(lambda: not large_bodies())
        finally:
            gc.enable()
        for line in lines:
            line.writer.transport.abort()


def large_bodies():
    return [kept for kept in gc.get_objects() if isinstance(kept, RequestBody) and kept.size > 100_000]


async def until(condition):
    """Wait for what an application has no event for."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)
