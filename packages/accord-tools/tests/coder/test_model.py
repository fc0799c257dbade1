"""A provider that fails in every way: the user reads its words, and the conversation goes on."""

import asyncio
import json
from dataclasses import dataclass

import msgspec
import pytest
from interop.model import chat, messages, responses
from interop.model.replies import Words

import accord
from accord_tools.coder.open_model import ModelSettings
from tests.coder.conftest import APIS


@dataclass
class Silence:
    """An answer that begins, and says nothing more."""

    begun: bytes = b""


class Provider:
    """An HTTP server that answers each request with what is next in a list of raw answers."""

    def __init__(self):
        self.answers = []
        self.requests = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._tasks = set()
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(it[16:]) for it in head.split(b"\r\n") if it.lower().startswith(b"content-length: ")), 0)
            await reader.readexactly(length)
            if b" /models" in head or b"/models" in head.split(b"\r\n")[0]:
                writer.write(status(200, {"object": "list", "data": []}))
            else:
                self.requests += 1
                answer = self.answers.pop(0)
                if isinstance(answer, Silence):
                    writer.write(answer.begun)
                    await writer.drain()
                    await asyncio.Event().wait()
                writer.write(answer)
            await writer.drain()
        finally:
            writer.close()


def status(code, body, *headers):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {code} X", "content-type: application/json", f"content-length: {len(raw)}", "connection: close"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + raw


def stream(text):
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + text.encode()


def chunk_cut_short(text):
    """A stream whose last chunk is shorter than it says."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + f"{len(text):x}\r\n{text}\r\n1000\r\ndata: ".encode()


SAID = {"error": {"type": "some_error", "message": "the provider's very words"}}
SOON = ("retry-after-ms: 1",)

CUT = {
    "anthropic": 'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":'
    '"assistant","content":[],"model":"x","usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
    "openai": 'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hal"}}]}\n\n',
    "responses": 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hal",'
    '"item_id":"i","output_index":0,"content_index":0,"sequence_number":1,"logprobs":[]}\n\n',
}


WHOLE = {
    api: "".join(form({"model": "m", "stream": True, "input": [], "messages": []}, [Words("Hallo")]))
    for api, form in {"anthropic": messages.stream, "openai": chat.stream, "responses": responses.stream}.items()
}
"""A whole answer of each API."""

ERRORS = {
    "anthropic": f"event: error\ndata: {json.dumps({'type': 'error', **SAID})}\n\n",
    "openai": f"data: {json.dumps(SAID)}\n\n",
    "responses": f"event: error\ndata: {json.dumps({'type': 'error', 'message': SAID['error']['message']})}\n\n",
}
"""What each API sends when it fails while it answers."""


@pytest.fixture
async def provider():
    async with Provider() as made:
        yield made


@pytest.fixture
def settings(api, provider):
    return ModelSettings(api=api, model="m", base_url=provider.url, patience=30.0)


async def failed(opened, **more):
    async with opened(**more) as session:
        with pytest.raises(accord.PeerError) as caught:
            await session.prompt("Go")
        assert session.is_open
    return caught.value


@pytest.mark.parametrize(("code", "reason"), [(400, "request"), (401, "login"), (404, "request")])
async def test_a_refusal_is_told_in_the_provider_s_words(opened, provider, code, reason):
    provider.answers = [status(code, SAID)]
    error = await failed(opened)
    assert "the provider's very words" in str(error)
    assert str(code) in str(error)
    assert error.data["reason"] == reason
    assert provider.requests == 1


@pytest.mark.parametrize(("code", "reason"), [(429, "limit"), (500, "server"), (503, "server")])
async def test_a_refusal_for_the_moment_is_repeated_and_then_told(opened, provider, code, reason):
    provider.answers = [status(code, SAID, *SOON)] * 5
    error = await failed(opened)
    assert "the provider's very words" in str(error)
    assert error.data["reason"] == reason
    assert provider.requests == 5


async def test_an_answer_that_breaks_off_is_told(opened, provider, api):
    provider.answers = [stream(CUT[api])] * 5
    error = await failed(opened)
    assert error.data["reason"] in ("broken", "server")


@pytest.mark.parametrize("garbage", [b"<html>Bad gateway</html>", b"\xff\xfe\x00", b"{"])
async def test_garbage_for_an_answer_is_told(opened, provider, garbage):
    provider.answers = [status(502, garbage, *SOON)] * 5
    error = await failed(opened)
    assert error.data["reason"] == "server"


async def test_a_stream_of_garbage_is_told(opened, provider):
    provider.answers = [stream("data: {not json\n\n")] * 5
    error = await failed(opened)
    assert error.data["reason"] in ("broken", "server")


async def test_a_provider_that_says_nothing_is_told_after_its_patience(opened, provider, settings):
    provider.answers = [Silence()]
    error = await failed(opened, changed=msgspec.structs.replace(settings, patience=0.2, retries=0))
    assert error.data["reason"] == "silent"
    assert provider.requests == 1


async def test_an_answer_that_falls_silent_is_told_after_its_patience(opened, provider, settings, api):
    provider.answers = [Silence(stream(CUT[api]))]
    error = await failed(opened, changed=msgspec.structs.replace(settings, patience=2.0))
    assert error.data["reason"] == "silent"


async def test_a_connection_that_breaks_in_an_answer_is_told(opened, provider, api):
    provider.answers = [chunk_cut_short(CUT[api])] * 5
    error = await failed(opened)
    assert error.data["reason"] == "broken"
    assert "broke off" in str(error)


async def test_an_error_in_the_middle_of_an_answer_is_told_in_the_provider_s_words(opened, provider, api):
    provider.answers = [stream(CUT[api] + ERRORS[api])] * 5
    error = await failed(opened)
    assert "the provider's very words" in str(error)


@pytest.mark.parametrize("body", [b"<html>Please log in to this network</html>", b""])
async def test_an_answer_that_is_not_the_api_s_is_told(opened, provider, body):
    provider.answers = [status(200, body)] * 5
    error = await failed(opened)
    assert error.data["reason"] in ("broken", "server")


async def test_a_refusal_for_the_moment_that_is_over_costs_nothing_but_time(opened, provider, api):
    provider.answers = [status(429, SAID, *SOON), status(500, SAID, *SOON), stream(WHOLE[api])]
    async with opened() as session:
        assert (await session.prompt("Go")).text == "Hallo"
    assert provider.requests == 3


async def test_after_a_failure_the_conversation_goes_on(opened, provider, api):
    provider.answers = [status(400, SAID), stream(WHOLE[api])]
    async with opened() as session:
        with pytest.raises(accord.PeerError):
            await session.prompt("Go")
        assert (await session.prompt("Again")).text == "Hallo"


async def test_a_provider_that_is_not_there_is_told(opened, settings):
    error = await failed(opened, changed=msgspec.structs.replace(settings, base_url="http://127.0.0.1:9", retries=0))
    assert "cannot reach" in str(error)
    assert error.data["reason"] == "broken"


async def test_a_failure_of_the_summary_is_told_as_well(opened, provider, settings, script, model, api):
    working = msgspec.structs.replace(settings, base_url=model.url + ("" if api == "anthropic" else "/v1"))
    script.say("Done.")
    async with opened(changed=working) as session:
        await session.prompt("Go")
    provider.answers = [status(401, SAID)]
    async with opened(load=session.id) as again:
        with pytest.raises(accord.PeerError, match="the provider's very words"):
            await again.prompt("/compact")


async def test_a_prompt_without_an_answer_is_not_summarised(opened, provider, settings):
    provider.answers = [status(401, SAID)]
    async with opened(load=None) as session:
        with pytest.raises(accord.PeerError):
            await session.prompt("Go")
        assert (await session.prompt("/compact")).text == "There is nothing to summarise yet."


def test_every_api_is_tried():
    assert sorted(CUT) == sorted(APIS)
