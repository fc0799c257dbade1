"""A peer that sends requests and takes no answers: it is read no further, and the link ends if that does not change."""

from __future__ import annotations

import asyncio
import json

import pytest

from accord import Handlers, Limits, Peer, memory_pair, v1
from tests.engine.virtual_time import settle

BACKLOG = 100_000
HIGH_WATER = 20_000
ANSWER = "x" * 5_000


class Deaf:
    """The other side: it sends what it likes, and reads only when it is told to."""

    def __init__(self, transport):
        self.transport = transport
        self.answers = []
        self.end = asyncio.get_running_loop().create_future()
        self._sent = 0

    async def start(self):
        await self.transport.start(self)
        self.transport.pause_reading()

    def received(self, frames):
        self.answers += [json.loads(frame) for frame in frames]

    def paused(self): ...
    def resumed(self): ...

    def ended(self, end):
        self.end.set_result(end)

    async def tell(self, method, **params):
        self.transport.send([json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()])
        await settle()

    async def ask(self, method, times=1, **params):
        for _ in range(times):
            self._sent += 1
            call = {"jsonrpc": "2.0", "id": self._sent, "method": method, "params": params}
            self.transport.send([json.dumps(call).encode()])
            await settle()

    async def read(self):
        self.transport.resume_reading()
        await settle()


@pytest.fixture
def handlers():
    handlers = Handlers()
    handlers.started = []

    @handlers.on_request("_test/large")
    def large(params):
        handlers.started.append(params)
        return ANSWER

    @handlers.on_request("_test/slow")
    async def slow(params):
        handlers.started.append(params)
        await handlers.may_go_on.wait()
        return ANSWER

    @handlers.on_request("_test/careful")
    async def careful(params, context):
        await handlers.may_go_on.wait()
        await context.wait_for_room()
        handlers.started.append(params)
        return ANSWER

    @handlers.on(v1.CancelNotification)
    def cancel(_):
        handlers.cancelled.append(list(handlers.started))

    handlers.cancelled = []
    handlers.may_go_on = asyncio.Event()
    return handlers


@pytest.fixture
async def sides(handlers, request):
    limits = Limits(backlog=BACKLOG, stalled=60, grace=0.1, **getattr(request, "param", {}))
    here, there = memory_pair(high_water=HIGH_WATER)
    async with Peer(here, handlers, role="client", limits=limits) as peer:
        deaf = Deaf(there)
        await deaf.start()
        yield peer.connection, deaf
        await deaf.transport.close()


def kept(connection):
    """Bytes that wait because the other side does not read; answers made while output is full count twice."""
    return connection.transport.unsent + connection._backlog.size


MOST = HIGH_WATER + 2 * BACKLOG + 20_000
"""Bytes past which nothing grows, and what a message takes."""


@pytest.mark.parametrize("method", ["_test/large", "_test/slow", "_test/unknown" + "x" * 5_000])
async def test_a_peer_that_reads_no_answers_is_read_no_further(sides, handlers, method):
    connection, deaf = sides
    handlers.may_go_on.set()
    await deaf.ask(method, times=500)
    assert connection.read_pause.paused
    assert deaf.transport.unsent > 0, "what it sends stays with it"
    assert kept(connection) < MOST
    await deaf.read()
    assert not connection.read_pause.paused
    assert [answer["id"] for answer in deaf.answers] == list(range(1, 501)), "every request is answered, in order"
    assert kept(connection) == 0


async def test_messages_that_make_no_sense_count_as_well(sides):
    connection, deaf = sides
    for _ in range(5_000):
        deaf.transport.send([b'{"jsonrpc":"2.0","id":1,"method":7,"params":{}}'])
        await settle()
    assert connection.read_pause.paused
    assert kept(connection) < MOST
    await deaf.read()
    assert len(deaf.answers) == 5_000


async def test_answers_of_handlers_that_run_already_count_as_well(sides, handlers):
    connection, deaf = sides
    await deaf.ask("_test/slow", times=100)
    assert not connection.read_pause.paused
    handlers.may_go_on.set()
    await settle()
    assert connection.read_pause.paused


async def test_a_handler_that_waits_for_room_makes_no_answers_that_nobody_reads(sides, handlers):
    _, deaf = sides
    await deaf.ask("_test/careful", times=100)
    handlers.may_go_on.set()
    await settle()
    assert len(handlers.started) < 25
    await deaf.read()
    assert len(deaf.answers) == len(handlers.started) == 100


async def test_requests_are_held_while_output_is_full_and_answers_to_us_are_still_read(sides, handlers):
    connection, deaf = sides
    await deaf.ask("_test/large", times=10)
    started = len(handlers.started)
    assert started < 10
    asking = asyncio.create_task(connection.call("_test/ask"))
    await settle()
    deaf.transport.send([b'{"jsonrpc":"2.0","id":1,"result":{}}'])
    assert bytes(await asking) == b"{}"
    assert len(handlers.started) == started
    await deaf.read()
    assert len(handlers.started) == 10


async def test_a_held_request_that_is_cancelled_is_started_and_cancelled(sides, handlers):
    connection, deaf = sides
    await deaf.ask("_test/large", times=10)
    await deaf.ask("_test/slow")
    await deaf.tell("$/cancel_request", requestId=11)
    await deaf.read()
    assert deaf.answers[-1]["error"]["code"] == -32800
    assert connection.statistics().handling == 0


async def test_a_cancelled_session_s_held_requests_are_started_before_they_are_cancelled(sides, handlers):
    _, deaf = sides
    await deaf.ask("_test/large", times=10)
    await deaf.ask("_test/slow", sessionId="one")
    await deaf.ask("_test/slow", sessionId="two")
    await deaf.tell("session/cancel", sessionId="one")
    (started,) = handlers.cancelled
    assert {"sessionId": "one"} in started
    assert {"sessionId": "two"} not in started
    handlers.may_go_on.set()
    await deaf.read()
    assert sorted(answer["id"] for answer in deaf.answers) == list(range(1, 13))


async def test_a_link_on_which_nothing_is_read_for_a_minute_ends_and_says_why(sides):
    connection, deaf = sides
    await deaf.ask("_test/large", times=500)
    assert connection.read_pause.paused
    end = await connection.closed()
    assert asyncio.get_running_loop().time() < 130
    assert end.reason == "unresponsive"
    assert "none of our output was read for 60 seconds" in end.detail
    assert "has to read answers while it sends requests" in end.detail


async def test_a_peer_that_reads_slowly_keeps_its_link(sides):
    connection, deaf = sides
    await deaf.ask("_test/large", times=100)
    for _ in range(20):
        await asyncio.sleep(50)
        await deaf.read()
        deaf.transport.pause_reading()
        await deaf.ask("_test/large", times=100)
    assert connection.is_open


@pytest.mark.parametrize("sides", [{"handling": 10}], indirect=True)
async def test_more_requests_than_may_be_handled_at_once_are_refused_and_cancellations_still_come_through(sides):
    connection, deaf = sides
    deaf.transport.resume_reading()
    await deaf.ask("_test/slow", times=15)
    assert connection.statistics().handling == 10
    assert {answer["id"] for answer in deaf.answers} == {11, 12, 13, 14, 15}
    assert "10 requests are already being handled" in deaf.answers[0]["error"]["message"]
    await deaf.tell("$/cancel_request", requestId=3)
    assert deaf.answers[-1]["id"] == 3
    await deaf.ask("_test/slow")
    assert connection.statistics().handling == 10


@pytest.mark.parametrize("sides", [{"handling_bytes": 30_000}], indirect=True)
async def test_more_bytes_of_requests_than_may_be_handled_at_once_are_refused(sides):
    connection, deaf = sides
    deaf.transport.resume_reading()
    await deaf.ask("_test/slow", times=5, text="y" * 10_000)
    assert connection.statistics().handling == 2
    assert "the limit is 30,000; send it again once some are answered" in deaf.answers[0]["error"]["message"]
    await deaf.tell("$/cancel_request", requestId=1)
    await deaf.tell("$/cancel_request", requestId=2)
    await deaf.ask("_test/slow", text="y" * 100_000)
    assert connection.statistics().handling == 1, "one may be as large as any message"


async def test_messages_that_wait_for_an_initialize_without_an_answer_are_bounded():
    limits = Limits(backlog=BACKLOG, grace=0.1)
    here, there = memory_pair(high_water=HIGH_WATER)
    handlers, may_answer = Handlers(), asyncio.Event()

    @handlers.on(v1.InitializeRequest)
    async def initialize(_):
        await may_answer.wait()
        return v1.InitializeResponse(1)

    async with Peer(here, handlers, role="agent", limits=limits) as peer:
        deaf = Deaf(there)
        await deaf.start()
        await deaf.read()
        await deaf.ask("initialize", protocolVersion=1)
        await deaf.ask("_test/early", times=500, text="y" * 1_000)
        assert peer.connection.read_pause.paused
        assert peer.connection._backlog.size < 2 * BACKLOG
        may_answer.set()
        await settle()
        assert len(deaf.answers) == 501
        await deaf.transport.close()


async def test_two_sides_that_ask_each_other_for_more_than_both_may_keep_come_to_an_end():
    """Far more answers than either side may keep, both ways at once: requests are small, so they are held."""
    handlers = Handlers()

    @handlers.on_request("_test/large")
    def large(params):
        return ANSWER

    async def ask_much(peer):
        answers = await asyncio.gather(*(peer.request_raw("_test/large", {}) for _ in range(500)))
        assert answers == [ANSWER] * 500

    sides = memory_pair(high_water=HIGH_WATER)
    limits = Limits(backlog=1_000_000)
    async with (
        Peer(sides[0], handlers, role="client", limits=limits) as one,
        Peer(sides[1], handlers, role="client", limits=limits) as other,
    ):
        async with asyncio.TaskGroup() as both:
            both.create_task(ask_much(one))
            both.create_task(ask_much(other))
        assert asyncio.get_running_loop().time() < 1
