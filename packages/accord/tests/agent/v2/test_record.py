"""What a session of one version is in the other: the record is continued, replayed and read in both."""

from __future__ import annotations

import pytest

from accord import Agent, MemoryStore, v2
from accord.schema import codec


def scribe(store):
    agent = Agent("scribe", store=store)

    @agent.on_prompt
    async def write(turn):
        if turn.text == "read":
            history = await turn.session.history()
            await turn.say(" | ".join(message.text for message in history.messages))
            return
        await turn.think("hm")
        await turn.say(f"You said {turn.text}.")
        async with turn.tool("Look", kind="read") as tool:
            await tool.text("seen")

    return agent


async def hello(client, version):
    if version == 2:
        await client.hello()
    else:
        await client.request("initialize", {"protocolVersion": 1})


async def open_session(client, cwd="/project"):
    return (await client.request("session/new", {"cwd": cwd, "mcpServers": []}))["sessionId"]


async def prompted(client, version, session_id, text):
    """Send a prompt and read to the end of its turn; all updates."""
    request = client.prompt(session_id, text)
    updates = []
    while True:
        message = await client.receive()
        if version == 1 and message.get("id") == request:
            return updates
        if "method" in message:
            updates.append(message["params"]["update"])
            if version == 2 and updates[-1].get("state") == "idle":
                return updates


async def replayed(client, version, session_id):
    """Load the session; all updates before the answer."""
    params = {"sessionId": session_id, "cwd": "/project", "mcpServers": []}
    if version == 2:
        request = client.call("session/resume", params | {"replayFrom": {"type": "start"}})
    else:
        request = client.call("session/load", params)
    updates = []
    while (message := await client.receive()).get("id") != request:
        updates.append(message["params"]["update"])
    assert "result" in message
    return updates


def text_of(update):
    content = update.get("content", [])
    return "".join(it.get("text", "") for it in (content if isinstance(content, list) else [content]))


@pytest.mark.parametrize("written", [1, 2])
@pytest.mark.parametrize("read", [1, 2])
async def test_a_session_of_either_version_is_replayed_in_either(speak, written, read):
    store = MemoryStore()
    async with speak(scribe(store), hello=False) as client:
        await hello(client, written)
        session_id = await open_session(client)
        await prompted(client, written, session_id, "hello")
    async with speak(scribe(store), hello=False) as client:
        await hello(client, read)
        updates = await replayed(client, read, session_id)
        spoken = {it["sessionUpdate"].removesuffix("_chunk"): text_of(it) for it in updates if "messageId" in it}
        thought = "agent_thought"
        assert spoken == {"user_message": "hello", thought: "hm", "agent_message": "You said hello."}
        [call] = [it for it in updates if "toolCallId" in it]
        assert (call["title"], call["status"], text_of(call["content"][0])) == ("Look", "completed", "seen")
        if read == 2:
            assert updates[-1] == {"sessionUpdate": "state_update", "state": "idle"}


@pytest.mark.parametrize("versions", [(1, 2), (2, 1), (2, 2)])
async def test_a_session_is_continued_and_read_in_another_version(speak, versions):
    store = MemoryStore()
    session_id = None
    for version, text in zip(versions, ("one", "two"), strict=True):
        async with speak(scribe(store), hello=False) as client:
            await hello(client, version)
            if session_id is None:
                session_id = await open_session(client)
            else:
                await replayed(client, version, session_id)
            await prompted(client, version, session_id, text)
            if text == "two":
                said = "".join(map(text_of, await prompted(client, version, session_id, "read")))
                for words in ("one", "You said one.", "two", "You said two."):
                    assert words in said


async def test_ids_stay_the_same_in_a_replay(speak):
    store = MemoryStore()
    async with speak(scribe(store)) as client:
        session_id = await open_session(client)
        live = await prompted(client, 2, session_id, "hello")
    async with speak(scribe(store)) as client:
        again = await replayed(client, 2, session_id)
    assert {it["messageId"] for it in live if "messageId" in it} == {
        it["messageId"] for it in again if "messageId" in it
    }


async def test_a_prompt_to_a_session_that_was_opened_elsewhere_is_refused_there(speak):
    store = MemoryStore()
    agent = scribe(store)
    async with speak(agent) as first, speak(agent) as second:
        session_id = await open_session(first)
        await replayed(second, 2, session_id)
        error = await first.expect_error(first.prompt(session_id), -32002)
        assert error["data"] == {"sessionId": session_id, "reason": "taken"}
        await prompted(second, 2, session_id, "hello")


NOBODY_KNOWS = [
    {"sessionUpdate": "hologram", "depth": [1, None]},
    {"sessionUpdate": "agent_message", "messageId": "m", "content": [{"type": "smell", "of": "tea"}]},
    {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "t",
        "title": "Odd",
        "kind": "ponder",
        "status": "completed",
        "content": [{"type": "session", "sessionId": "child"}],
    },
]
"""An update, a block, and a kind and content of a tool call that this version of Accord does not know."""


async def test_what_nobody_knows_is_replayed_as_it_came(speak):
    store = MemoryStore()
    agent = Agent("odd", store=store)

    @agent.on_prompt
    async def send(turn):
        for update in NOBODY_KNOWS:
            await turn.send(codec.convert(update, v2.SessionUpdate))

    def parts(updates):
        """What the updates say, each field that the test has sent."""
        return [
            {name: update.get(name) for name in sent}
            for sent in NOBODY_KNOWS
            for update in updates
            if update["sessionUpdate"] == sent["sessionUpdate"]
        ]

    async with speak(agent) as client:
        session_id = await open_session(client)
        assert parts(await prompted(client, 2, session_id, "go")) == NOBODY_KNOWS
    async with speak(agent) as client:
        assert parts(await replayed(client, 2, session_id)) == NOBODY_KNOWS
