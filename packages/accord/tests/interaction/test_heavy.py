"""A heavy message is read in a thread: the loop goes on, and the order of the wire stays."""

from __future__ import annotations

import asyncio
import threading

import pytest

from accord.engine.handlers import Handlers
from accord.errors import ConnectionClosed
from accord.jsonrpc import chunked_decode
from tests.interaction.staging import ask, result, says, tell, text_of
from tests.interaction.versions import spoken

HEAVY = {f"name {number}": ["a value", number, {"deeper": None}] for number in range(20_000)}
"""Many values in 1 MB."""

LONG = "word " * 2_700_000
"""One string of 13.5 MB."""


def collecting(texts):
    client = Handlers()
    client.on(spoken.SessionNotification)(lambda notification: texts.append(text_of(notification)[:5]))
    return client


def prompting(peer):
    return asyncio.create_task(peer.request(spoken.PromptRequest.of(spoken.SessionId("s"), "go")))


def echoing(handlers, stage):
    handlers.on(spoken.PromptRequest)(lambda _: spoken.ended("end_turn"))

    @handlers.on_request("_example.com/echo")
    async def back(params):
        return params


@pytest.mark.parametrize("heavy", [HEAVY, LONG], ids=["many values", "a long string"])
async def test_a_heavy_request_and_a_heavy_answer_keep_what_they_hold(connect, heavy):
    async with connect(echoing, Handlers()) as link:
        assert await link.client.request_raw("_example.com/echo", {"it": heavy}) == {"it": heavy}


@pytest.mark.parametrize("text", ["heavy" + LONG, "heavy"], ids=["heavy", "light"])
async def test_what_follows_a_heavy_message_is_handled_after_it(connect, text):
    texts = []
    async with connect.as_agent(collecting(texts)) as (script, peer):
        asking = prompting(peer)
        call = await script.expect("session/prompt")
        script.send(says("first"), says(text), says("third"), says(text), says("fifth"))
        script.send(result(call, **spoken.ending()))
        await asking
        assert texts == ["first", "heavy", "third", "heavy", "fifth"]


async def test_a_heavy_message_before_the_end_is_handled(connect):
    texts = []
    async with connect.as_agent(collecting(texts)) as (script, peer):
        script.send(says("heavy" + LONG), says("after"))
        await script.close()
        assert (await peer.connection.closed()).reason == "peer_closed"
        assert texts == ["heavy", "after"]


async def test_a_request_fails_that_a_peer_leaves_open_after_a_heavy_message(connect):
    async with connect.as_agent(collecting([])) as (script, peer):
        asking = prompting(peer)
        await script.expect("session/prompt")
        script.send(says("heavy" + LONG))
        await script.close()
        with pytest.raises(ConnectionClosed):
            await asking


async def test_closing_does_not_wait_for_a_heavy_message(connect):
    texts = []
    async with connect.as_agent(collecting(texts)) as (script, peer):
        arrived = asyncio.Event()
        peer.connection.observe(lambda _: arrived.set())
        script.send(says("light"), says("heavy" + LONG))
        await arrived.wait()
        await peer.close()
        assert texts in (["light"], ["light", "heavy"])


async def test_a_heavy_message_of_the_wrong_form_is_answered_under_its_id(connect):
    async with connect.as_client(echoing) as script:
        script.send(ask("session/prompt", 5, sessionId="s", prompt=list(HEAVY.values())))
        await script.expect_error(5, -32602)


async def test_the_loop_goes_on_while_a_heavy_message_is_read(connect, monkeypatch):
    light, heavy, go_on = asyncio.Event(), asyncio.Event(), threading.Event()
    client = Handlers()
    client.on_notification("_example.com/light")(lambda _: light.set())
    client.on_notification("_example.com/heavy")(lambda _: heavy.set())
    read = chunked_decode.read

    def read_when_told(frames):
        assert threading.current_thread() is not threading.main_thread()
        go_on.wait()
        return read(frames)

    monkeypatch.setattr(chunked_decode, "read", read_when_told)
    try:
        async with connect.as_agent(client) as (script, _):
            script.send(tell("_example.com/light"), tell("_example.com/heavy", it=HEAVY))
            await light.wait()
            for _ in range(100):
                await asyncio.sleep(0)
            assert not heavy.is_set()
            go_on.set()
            await heavy.wait()
    finally:
        go_on.set()
