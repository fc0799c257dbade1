"""Messages that arrive early: the client holds a bounded amount and loses none."""

import asyncio
import itertools

import pytest

from accord.http import HttpTransport
from accord.http.message_numbers import EACH, HELD, InOrder
from accord.http.sse import EventReader
from accord.jsonrpc.line_frames import Oversized
from tests.http.numbering import numbering, update
from tests.http.talking import editor_of
from tests.waiting import DEADLINE

MIB = 1024 * 1024
LONG = "x" * 100_000


async def test_reading_stops_when_the_first_message_never_arrives(monkeypatch):
    monkeypatch.setattr("accord.http.message_numbers.MISSING", 1.0)

    async def without_the_first(stream, session):
        for number in itertools.count(2):
            await stream.say(number, update("s", LONG))

    async with numbering(without_the_first) as url, asyncio.timeout(DEADLINE):
        transport = HttpTransport(url)
        async with editor_of(transport) as editor:
            end = await editor.connection.closed()
            assert end.reason == "broken"
            assert "message 1 is missing" in end.detail
            assert transport.arrivals._order.held_bytes < HELD + MIB


async def test_messages_that_arrive_far_too_early_are_delivered_in_order():
    count, first = 400, asyncio.Event()

    async def speak(stream, session):
        if session is None:
            await stream.write(b":session late\n\n")
            for number in range(2, count + 2):
                await stream.say(number, update("s", f"{number} {LONG}"))
        else:
            await first.wait()
            await stream.say(1, update("s", f"1 {LONG}"))
        await asyncio.Event().wait()

    async with numbering(speak) as url, asyncio.timeout(DEADLINE):
        transport = HttpTransport(url)
        async with editor_of(transport) as editor:
            while transport.arrivals._order.held_bytes <= HELD:  # noqa: ASYNC110 - a transport has no event for it
                await asyncio.sleep(0)
            first.set()
            while len(editor.heard.get("s", [])) < count + 1:
                await editor.hear_more()
    assert [int(text.split()[0]) for text in editor.heard["s"]] == list(range(1, count + 2))


def test_small_early_messages_count_towards_the_bound():
    order = InOrder(room=10 * EACH)
    for number in range(2, 12):
        assert not order.is_too_far(number)
        order.arrived(number, b"x")
    assert order.is_too_far(11)
    assert not order.is_too_far(0)  # a stream that is behind may bring the first
    assert len(order.arrived(1, b"x")) == 11
    assert not order.is_too_far(11)


async def test_a_server_that_names_too_many_sessions_ends_the_connection(monkeypatch):
    monkeypatch.setattr("accord.http.client.http_transport.STREAMS", 20)

    async def speak(stream, session):
        for number in range(100 if session is None else 0):
            await stream.write(b":session s%d\n\n" % number)
        await asyncio.Event().wait()

    async with numbering(speak) as url, asyncio.timeout(DEADLINE):
        transport = HttpTransport(url)
        async with editor_of(transport) as editor:
            end = await editor.connection.closed()
            assert "named more than 20 sessions" in end.detail
            assert len(transport._streams) == 21


@pytest.mark.parametrize("number", ["9" * 5000, "\u0661", "-1"])
async def test_an_event_id_that_is_not_a_number_does_not_end_a_stream(number):
    async def speak(stream, session):
        await stream.write(f"id: {number}\n".encode() + b"data: " + update("s", "here") + b"\n\n")
        await asyncio.Event().wait()

    async with numbering(speak) as url, asyncio.timeout(DEADLINE), editor_of(HttpTransport(url)) as editor:
        await editor.first_words.wait()
        assert editor.text("s") == "here"


def test_an_event_of_empty_lines_counts_towards_the_limit():
    reader = EventReader(1000)
    (found,) = reader.feed(b"data:\n" * 1002 + b"\n")
    assert isinstance(found.data, Oversized)
    assert len(EventReader(1000).feed(b"data: " + b"x" * 1000 + b"\n\n")) == 1
