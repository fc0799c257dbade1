"""A program that is an agent to one side and a client to the other loses no member of what it passes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import accord
from accord import v1
from accord.schema.base import unknown_members
from accord.testing import ScriptedPeer
from accord.transports.memory_transport import pair
from tests.client.conftest import Stage, staged

CHUNK = {
    "sessionUpdate": "agent_message_chunk",
    "content": {"type": "text", "text": "hi", "tone": "warm"},
    "messageId": "m",
    "mood": {"good": True},
}
CALL = {
    "sessionUpdate": "tool_call",
    "toolCallId": "c",
    "title": "Delete",
    "content": [{"type": "diff", "path": "/a", "newText": "", "oldText": "x", "whole": True}],
    "locations": [{"path": "/a", "column": 3}],
}
INFO = {"sessionUpdate": "session_info_update", "title": "New", "colour": "red"}
TITLE = {"sessionUpdate": "session_info_update", "title": "go"}
"""The title that the bridge gives a new session, as every agent with a store does."""
PROMPT = [{"type": "text", "text": "go", "language": "en"}]


class Bridge:
    """`editor` in front and `stage.agent` at the back are scripts; the agent and the client between them are ours."""

    def __init__(self, editor: ScriptedPeer, stage: Stage, store: accord.MemoryStore) -> None:
        self.editor = editor
        self.stage = stage
        self.store = store

    async def session(self) -> None:
        opening = self.editor.call("session/new", {"cwd": "/", "mcpServers": []})
        self.stage.agent.answer(await self.stage.agent.expect("session/new"), {"sessionId": "back"})
        self.id = (await self.editor.expect_result(opening))["sessionId"]


@asynccontextmanager
async def bridged(*, keep_unknown: bool) -> AsyncGenerator[Bridge]:
    store = accord.MemoryStore()
    async with staged(accord.Client(keep_unknown=keep_unknown)) as stage:
        bridge = accord.Agent("bridge", store=store, keep_unknown=keep_unknown)
        sessions: dict[str, accord.RemoteSession] = {}

        @bridge.on_session
        async def opened(session: accord.Session) -> None:
            sessions[session.id] = await stage.remote.new_session("/")

        @bridge.on_prompt
        async def work(turn: accord.Turn) -> None:
            async for update in sessions[turn.session.id].prompt(*turn.prompt):
                await turn.session.send(update)

        here, there = pair()
        serving = asyncio.create_task(bridge.serve(there))
        async with ScriptedPeer(here) as editor:
            await editor.expect_result(editor.call("initialize", {"protocolVersion": 1}))
            yield Bridge(editor, stage, store)
        await serving


async def passed_on(bridge: Bridge) -> tuple[list[Any], list[Any]]:
    """The prompt that arrives at the back, and the updates that arrive in front."""
    await bridge.session()
    asked = bridge.editor.call("session/prompt", {"sessionId": bridge.id, "prompt": PROMPT})
    prompt = await bridge.stage.agent.expect("session/prompt")
    for update in CHUNK, CALL, INFO:
        bridge.stage.update(update, "back")
    bridge.stage.end(prompt)
    updates: list[Any] = []
    while "method" in (message := await bridge.editor.receive()):
        updates.append(message["params"]["update"])
    assert (message["id"], message["result"]) == (asked, {"stopReason": "end_turn"})
    return prompt["params"]["prompt"], updates


async def test_a_bridge_that_keeps_unknown_members_loses_none() -> None:
    async with bridged(keep_unknown=True) as bridge:
        assert await passed_on(bridge) == (PROMPT, [TITLE, CHUNK, CALL, INFO])


async def test_unknown_members_are_kept_in_the_store() -> None:
    async with bridged(keep_unknown=True) as bridge:
        await passed_on(bridge)
        kept = [json.loads(update) async for page in bridge.store.updates(bridge.id) for update in page]
        assert [update for update in kept if update["sessionUpdate"] != "user_message_chunk"] == [
            TITLE,
            CHUNK,
            CALL,
            INFO,
        ]


async def test_without_the_option_unknown_members_are_skipped() -> None:
    async with bridged(keep_unknown=False) as bridge:
        prompt, updates = await passed_on(bridge)
        assert prompt == [{"type": "text", "text": "go"}]
        assert updates[-1] == {"sessionUpdate": "session_info_update", "title": "New"}


async def test_the_result_of_a_request_keeps_its_unknown_members() -> None:
    async with staged(accord.Client(keep_unknown=True)) as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        prompt = await stage.agent.expect("session/prompt")
        stage.agent.answer(prompt, {"stopReason": "end_turn", "usage": None, "cost": 3})
        await reply
        asking = asyncio.create_task(stage.remote.request(v1.ListSessionsRequest(), force=True))
        listed = {"sessions": [{"sessionId": "s", "cwd": "/", "pinned": True}], "total": 1}
        stage.agent.answer(await stage.agent.expect("session/list"), listed)
        answer = await asking
        assert unknown_members(answer) == {"total": 1}
        assert unknown_members(answer.sessions[0]) == {"pinned": True}
