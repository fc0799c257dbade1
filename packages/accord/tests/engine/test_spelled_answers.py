"""Answers in every spelling: the ordinary one is read without its envelope, and none is read wrongly."""

from __future__ import annotations

import asyncio

import pytest

from accord import Handlers, Peer, PeerError, ProtocolError, memory_pair, v1
from accord.jsonrpc import wire_messages

REQUEST = v1.ReadTextFileRequest(v1.SessionId("s"), "/file")


class RawEnd:
    """The other end of a connection: it sees the requests, and sends what it is told."""

    def __init__(self, transport):
        self.transport = transport
        self.calls = asyncio.Queue()

    def received(self, frames):
        for frame in frames:
            self.calls.put_nowait(wire_messages.parse(frame))

    def paused(self): ...

    def resumed(self): ...

    def ended(self, end): ...

    async def answer(self, spelling):
        call = await self.calls.get()
        self.transport.send([spelling.replace(b"ID", b"%d" % call.id)])


async def asked(spelling):
    """What a request gets when its answer is spelled like this, and the statistics of its connection."""
    here, there = memory_pair()
    async with Peer(here, Handlers(), role="agent") as peer:
        other = RawEnd(there)
        await there.start(other)
        asking = asyncio.create_task(peer.request(REQUEST, force=True))
        await other.answer(spelling)
        try:
            answer = (await asking).content
        except (PeerError, ProtocolError) as error:
            answer = type(error)
        seen = peer.connection.statistics()
        await there.close()
        return answer, seen


WELL_SPELLED = {
    "as most peers spell it": b'{"jsonrpc":"2.0","id":ID,"result":{"content":"text"}}',
    "with spaces": b'{ "jsonrpc": "2.0", "id": ID, "result": {"content": "text"} }',
    "with a space before the last brace": b'{"jsonrpc":"2.0","id":ID,"result":{"content":"text"} }',
    "the version last": b'{"id":ID,"result":{"content":"text"},"jsonrpc":"2.0"}',
    "the id last": b'{"jsonrpc":"2.0","result":{"content":"text"},"id":ID}',
    "a whole number with a fraction": b'{"jsonrpc":"2.0","id":ID.0,"result":{"content":"text"}}',
    "an error that is null": b'{"jsonrpc":"2.0","id":ID,"result":{"content":"text"},"error":null}',
    "a member that only others know": b'{"jsonrpc":"2.0","id":ID,"result":{"content":"text","more":1}}',
    "the words of an answer in it": b'{"jsonrpc":"2.0","id":ID,"result":{"x":",\\"result\\":","content":"text"}}',
}


@pytest.mark.parametrize("spelling", WELL_SPELLED.values(), ids=WELL_SPELLED.keys())
async def test_an_answer_arrives_in_every_spelling_of_it(spelling):
    answer, seen = await asked(spelling)
    assert answer == "text"
    assert (seen.frames_in, seen.malformed, seen.strays, seen.pending) == (1, 0, 0, 0)


REFUSED = {
    "an error": (b'{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"no"}}', PeerError, 0),
    "both a result and an error": (
        b'{"jsonrpc":"2.0","id":ID,"result":{"content":"text"},"error":{"code":1,"message":"no"}}',
        ProtocolError,
        1,
    ),
    "a result of another form": (b'{"jsonrpc":"2.0","id":ID,"result":{"content":7}}', ProtocolError, 0),
    "no result": (b'{"jsonrpc":"2.0","id":ID}', ProtocolError, 1),
    "two results": (b'{"jsonrpc":"2.0","id":ID,"result":{"content":7},"result":{}}', ProtocolError, 0),
}


@pytest.mark.parametrize(("spelling", "error", "malformed"), REFUSED.values(), ids=REFUSED.keys())
async def test_an_answer_without_a_valid_result_fails_its_request(spelling, error, malformed):
    answer, seen = await asked(spelling)
    assert answer is error
    assert (seen.malformed, seen.strays, seen.pending) == (malformed, 0, 0)


async def test_a_result_that_goes_on_after_its_end_is_not_read_as_one():
    """Two values lie between the head and the last brace: the frame is not JSON, and the request stays open."""
    here, there = memory_pair()
    async with Peer(here, Handlers(), role="agent") as peer:
        other = RawEnd(there)
        await there.start(other)
        asking = asyncio.create_task(peer.request(REQUEST, force=True))
        call = await other.calls.get()
        for result in (b'{"content":"one"},{"content":"two"}', b'{"content":"three"}'):
            there.send([b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (call.id, result)])
        assert (await asking).content == "three"
        assert peer.connection.statistics().malformed == 1
        await there.close()
