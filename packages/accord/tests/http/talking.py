"""An agent, a client (`Editor`), and the three transports between them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import accord
from accord import Handlers, Peer, v1
from accord.http import HttpTransport
from accord.transports.websocket_client import WebSocketTransport
from tests.waiting import DEADLINE

"""Seconds until a wait for something that should happen is a failure; generous, as machines are shared."""

WAYS = ("websocket", "http1", "http2")


def an_agent(name="talker", store=None):
    """It says each word of the prompt, and what it was asked to ask."""
    agent = accord.Agent(name, version="1.0.0", store=store)

    @agent.on_prompt
    async def talk(turn):
        if turn.text == "wait":
            await turn.say("waiting")
            await asyncio.Event().wait()
        if turn.text == "ask":
            async with turn.tool("Ask", kind="edit") as tool:
                decision = await tool.ask()
                await turn.say("allowed" if decision.allowed else "refused")
            return
        if turn.text.startswith("count "):
            for number in range(int(turn.text.removeprefix("count "))):
                await turn.say(f"{number} ")
            return
        for word in turn.text.split():
            await turn.say(f"{word} ")

    return agent


class Editor(Peer):
    """A client, and the texts that it has received of each session."""

    def __init__(self, transport):
        handlers = Handlers()
        handlers.on(v1.SessionNotification)(self.hear)
        handlers.on(v1.RequestPermissionRequest)(self.permit)
        super().__init__(transport, handlers, role="client")
        self.heard = {}
        self.first_words = asyncio.Event()

    def hear(self, notification):
        if isinstance(notification.update, v1.AgentMessageChunk):
            self.heard.setdefault(notification.session_id, []).append(notification.update.content.text)
            self.first_words.set()

    async def hear_more(self):
        """Wait for the next words, of any session."""
        self.first_words.clear()
        await self.first_words.wait()

    def permit(self, request):
        allow = next(option for option in request.options if option.kind == "allow_once")
        return v1.RequestPermissionResponse(v1.SelectedPermissionOutcome(allow.option_id))

    def text(self, session_id):
        return "".join(self.heard.get(session_id, []))

    async def open_session(self):
        return (await self.request(v1.NewSessionRequest("/project", []), timeout=DEADLINE)).session_id

    async def prompt(self, session_id, text):
        return await self.request(v1.PromptRequest.of(session_id, text), timeout=DEADLINE)


def transport_to(url, way, **options):
    if way == "websocket":
        return WebSocketTransport(url.replace("http", "ws", 1), **options)
    return HttpTransport(url, http2=way == "http2", **options)


@asynccontextmanager
async def editor_of(transport):
    async with Editor(transport) as editor:
        await editor.initialize(v1.InitializeRequest(1), timeout=DEADLINE)
        yield editor


async def nobody_is_connected(server):
    """Wait until the server has no connection left."""
    async with asyncio.timeout(DEADLINE):
        while server.app.connections:  # noqa: ASYNC110 - an application has no event for it
            await asyncio.sleep(0)
