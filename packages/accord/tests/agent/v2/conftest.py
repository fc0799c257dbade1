"""`speak(agent)`: a script that is the agent's client, in version 2 unless it says otherwise."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from accord import memory_pair
from accord.testing import ScriptedPeer
from tests.waiting import DEADLINE

"""Seconds until a wait for something that should happen is a failure; generous, as machines are shared."""


class Client(ScriptedPeer):
    """A scripted client with the words of version 2."""

    async def hello(self, **params):
        request = {"protocolVersion": 2, "info": {"name": "editor", "version": "1.0"}, **params}
        return await self.request("initialize", request)

    async def new(self, **params):
        """Open a session; its id."""
        return (await self.request("session/new", {"cwd": "/project", **params}))["sessionId"]

    def prompt(self, session_id, text="hello"):
        """Send a prompt; the id of the request."""
        return self.call("session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]})

    def cancel(self, session_id):
        self.tell("session/cancel", {"sessionId": session_id})

    async def update(self, kind=None):
        """Receive the next message, which must be an update; of this kind, if one is given.

        Cursors, which an agent with proposals announces at the end of each turn, are left out.
        """
        update = {"sessionUpdate": "cursor_update"}
        while update["sessionUpdate"] == "cursor_update":
            update = (await self.expect("session/update"))["params"]["update"]
        if kind is not None and update["sessionUpdate"] != kind:
            raise self._failed(f"expected {kind}, got {update}")
        return update

    async def state(self, state, **members):
        """Receive the next message, which must be this state and no more."""
        update = await self.update("state_update")
        expected = {"sessionUpdate": "state_update", "state": state, **members}
        if update != expected:
            raise self._failed(f"expected {expected}, got {update}")
        return update

    async def inserted(self, request_id, text="hello"):
        """Receive the echo, the answer and `running`, in this order; the message's id."""
        echo = await self.update("user_message")
        assert echo["content"] == [{"type": "text", "text": text}]
        assert await self.expect_result(request_id) == {"messageId": echo["messageId"]}
        await self.state("running")
        return echo["messageId"]

    async def said(self):
        """Receive the next message, which must be text of the agent; the text."""
        return (await self.update("agent_message_chunk"))["content"]["text"]

    async def until(self, kind, **members):
        """Receive updates up to one of this kind with these members; all of them."""
        seen = []
        while True:
            update = await self.update()
            seen.append(update)
            if update["sessionUpdate"] == kind and members.items() <= update.items():
                return seen


@pytest.fixture
def speak():
    @asynccontextmanager
    async def speak(agent, *, hello=True, **params):
        here, there = memory_pair()
        serving = asyncio.create_task(agent.serve(there))
        try:
            async with Client(here, deadline=DEADLINE) as client:
                if hello:
                    client.hello_answer = await client.hello(**params)
                yield client
        finally:
            await asyncio.wait_for(serving, DEADLINE)

    return speak
