"""The chat loop, with a local server in the place of the model that remembers what it heard."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from accord import v1


def event(**delta):
    finish = delta.pop("finish", None)
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def tool_call(name, **arguments):
    """A call in parts, as it streams: the name first, the arguments in two pieces."""
    text = json.dumps(arguments)
    first = {"index": 0, "id": "call-1", "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [{"index": 0, "function": {"arguments": piece}} for piece in (text[:5], text[5:])]
    return [*(event(tool_calls=[part]) for part in (first, *pieces)), event(finish="tool_calls")]


class Model:
    """A server that gives the answers of its script, one for each request."""

    def __init__(self):
        self.script = []
        self.heard = []
        self.asked = asyncio.Event()
        self.left = asyncio.Event()

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].split("\r\n")[0])
        self.heard.append(json.loads(await reader.readexactly(length)))
        self.asked.set()
        if not self.script:
            writer.write(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nslow")
        else:
            await self.stream(self.script.pop(0), reader, writer)
        writer.close()

    async def stream(self, events, reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for it in events:
            if it is None:
                await reader.read()  # until the other side hangs up
                self.left.set()
                return
            data = b": keep-alive\n\ndata: " + json.dumps(it).encode() + b"\n\n"
            for piece in (data[:9], data[9:]):  # chunks know nothing of lines
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()


@pytest.fixture
async def model():
    model = Model()
    server = await asyncio.start_server(model.answer, "127.0.0.1")
    async with server:
        model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield model


@pytest.fixture
def chat(running, model, tmp_path):
    @asynccontextmanager
    async def chat(**options):
        env = {"OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "fake", "CHAT_LOOP_STORE": str(tmp_path / ".sessions.db")}
        async with running("chat_loop.py", env=env, **options) as session:
            yield session

    return chat


async def test_text_thoughts_and_usage_stream(chat, model):
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}
    model.script = [
        [event(reasoning_content="Hm."), event(content="Hel"), event(content="lo"), event(finish="stop"), usage]
    ]
    async with chat() as session:
        reply = session.prompt("Hi")
        updates = [update async for update in reply]
        outcome = await reply
        assert outcome.text == "Hello"
        assert v1.TextContent("Hm.") in [
            update.content for update in updates if isinstance(update, v1.AgentThoughtChunk)
        ]
        assert session.state.usage.used == 10
        assert model.heard[0]["messages"][-1] == {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
        assert model.heard[0]["model"] == "fake"


async def test_a_tool_is_asked_for_used_and_its_result_given_to_the_model(chat, model, tmp_path):
    model.script = [
        tool_call("write_file", path="a.txt", text="new"),
        [event(content="Written."), event(finish="stop")],
    ]
    async with chat() as session:
        outcome = await session.prompt("Write it")
        assert (tmp_path / "a.txt").read_text() == "new"
        [call] = outcome.tool_calls
        assert (call.kind, call.status) == ("edit", "completed")
        assert call.content == [v1.Diff(str(tmp_path / "a.txt"), "new")]
        assert outcome.text == "Written."
        *_, asked, result = model.heard[1]["messages"]
        assert asked["tool_calls"][0]["function"]["name"] == "write_file"
        assert result == {"role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": "Written."}


async def test_what_the_user_refuses_is_told_to_the_model(chat, model, tmp_path):
    model.script = [tool_call("run", command="touch gone"), [event(content="As you wish."), event(finish="stop")]]
    async with chat(allow=False) as session:
        outcome = await session.prompt("Run it")
        assert [call.status for call in outcome.tool_calls] == ["failed"]
        assert model.heard[1]["messages"][-1]["content"] == "The user does not allow this."
        assert not (tmp_path / "gone").exists()


async def test_a_command_runs_in_a_terminal_and_its_output_goes_to_the_model(chat, model):
    model.script = [tool_call("run", command="echo painted; exit 2"), [event(content="Hm."), event(finish="stop")]]
    async with chat() as session:
        await session.prompt("Run it")
        assert model.heard[1]["messages"][-1]["content"] == "painted\n\n[exit code 2]"


async def test_a_tool_that_fails_is_told_to_the_model_and_the_turn_goes_on(chat, model):
    model.script = [
        tool_call("read_file", path="missing.txt"),
        tool_call("dance"),
        [event(content="Pity."), event(finish="stop")],
    ]
    async with chat() as session:
        assert (await session.prompt("Read it")).text == "Pity."
        assert model.heard[1]["messages"][-1]["content"].startswith("Error: ")
        assert (
            model.heard[2]["messages"][-1]["content"]
            == "Error: there is no tool 'dance'; there are: read_file, write_file, run"
        )


@pytest.mark.parametrize(("finish", "stop_reason"), [("length", "max_tokens"), ("content_filter", "refusal")])
async def test_why_the_model_stopped_is_why_the_turn_ends(chat, model, finish, stop_reason):
    model.script = [[event(content="Hel"), event(finish=finish)]]
    async with chat() as session:
        assert (await session.prompt("Hi")).stop_reason == stop_reason


async def test_a_cancel_hangs_up_and_the_next_turn_is_clean(chat, model):
    model.script = [[event(content="One moment"), None], [event(content="Yes?"), event(finish="stop")]]
    async with chat() as session:
        reply = session.prompt("Think for ever")
        async for _ in reply.iter_text():
            break
        assert (await reply.cancel()).stop_reason == "cancelled"
        await asyncio.wait_for(model.left.wait(), 30)
        assert (await session.prompt("Hello?")).text == "Yes?"


async def test_a_session_is_resumed_with_all_that_the_model_knew(chat, model):
    model.script = [[event(content="Noted."), event(finish="stop")], [event(content="42"), event(finish="stop")]]
    async with chat() as session:
        await session.prompt("Remember 42")
        known = session.id
    async with chat(session_id=known) as session:
        assert (await session.prompt("What was it?")).text == "42"
    said = [(message["role"], message["content"]) for message in model.heard[1]["messages"][1:]]
    assert [role for role, _ in said] == ["user", "assistant", "user"]
    assert said[0][1] == [{"type": "text", "text": "Remember 42"}]
    assert said[1][1] == "Noted."


async def test_an_error_of_the_api_is_an_error_of_the_turn(chat, model):
    async with chat() as session:
        with pytest.raises(Exception, match="429 Too Many Requests"):
            await session.prompt("Hi")
