"""What `test_memory.py` measures, each in a process of its own: `python memory_runs.py NAME`, figures as JSON."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from pathlib import Path

import accord
from accord import v1
from accord.transports.process_transport import ProcessTransport

AGENT = Path(__file__).with_name("memory_agent.py")
SESSION = v1.SessionId("s")
MANY = 300_000
BIG = 60_000_000


def memory(what):
    """`VmRSS`, what we have now, or `VmHWM`, the most that we ever had; in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise LookupError(what)


def forget_the_most():
    """Let `VmHWM` start anew from here."""
    Path("/proc/self/clear_refs").write_text("5")


class Transport(ProcessTransport):
    """Says when it is told to read no more."""

    def pause_reading(self):
        super().pause_reading()
        self.paused.set()


class Reader:
    """A client that counts updates; its handler can be held up."""

    def __init__(self):
        self.updates = self.characters = 0
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        handlers = accord.Handlers()
        handlers.on(v1.SessionNotification)(self.update)
        transport = Transport([sys.executable, "-I", "-S", str(AGENT)])
        transport.paused = self.paused = asyncio.Event()
        self.peer = accord.Peer(transport, handlers, role="client")

    async def update(self, notification):
        await self.may_go_on.wait()
        self.updates += 1
        self.characters += len(notification.update.content.text)

    async def prompt(self, words):
        return await self.peer.request(v1.PromptRequest.of(SESSION, words))


async def stuck():
    """Many updates for a handler that is stuck until nothing is read any more."""
    client = Reader()
    async with client.peer:
        await client.peer.initialize(v1.InitializeRequest(protocol_version=1))
        base = memory("VmRSS")
        forget_the_most()
        client.may_go_on.clear()
        prompt = asyncio.ensure_future(client.prompt(f"updates {MANY}"))
        await client.paused.wait()
        held = client.peer.connection.statistics().queued
        while_stuck = memory("VmHWM") - base
        client.may_go_on.set()
        await prompt
    return {"while stuck": while_stuck, "in all": memory("VmHWM") - base, "held": held, "updates": client.updates}


async def given_up():
    """Updates without end for a handler that is stuck, while a request of ours forbids to stop reading."""
    client = Reader()
    async with client.peer:
        await client.peer.initialize(v1.InitializeRequest(protocol_version=1))
        base = memory("VmRSS")
        forget_the_most()
        client.may_go_on.clear()
        unanswered = asyncio.ensure_future(client.peer.request_raw("_memory/never_answered"))
        error = ""
        try:
            await client.prompt(f"updates {MANY}")
        except accord.Overflow as overflow:
            error = str(overflow)
        figures = {"most": memory("VmHWM") - base, "error": error}
        client.may_go_on.set()
        unanswered.cancel()
    return figures


async def big_in():
    """One update of sixty million characters is received."""
    client = Reader()
    async with client.peer:
        await client.peer.initialize(v1.InitializeRequest(protocol_version=1))
        await client.prompt("updates 1000")
        base = memory("VmRSS")
        forget_the_most()
        await client.prompt(f"big {BIG}")
    return {"most": memory("VmHWM") - base, "characters": client.characters}


async def big_out():
    """One prompt of sixty million characters is sent."""
    client = Reader()
    async with client.peer:
        await client.peer.initialize(v1.InitializeRequest(protocol_version=1))
        await client.prompt("updates 1000")
        base = memory("VmRSS")
        forget_the_most()
        await client.prompt("x" * BIG)
    return {"most": memory("VmHWM") - base}


async def long_link():
    """Many messages over one link: updates, requests, cancelled requests, unknown methods, many sessions."""
    client, agent = accord.Handlers(), accord.Handlers()

    @client.on(v1.SessionNotification)
    async def update(_): ...

    @client.on_notification("_memory/note")
    def note(_): ...

    @agent.on_request("_memory/ask")
    async def ask(params):
        await asyncio.sleep(0)
        return params

    @agent.on_request("_memory/now")
    def now(params):
        return params

    here, there = accord.memory_pair()
    figures = {}
    async with (
        accord.Peer(here, client, role="client") as peer,
        accord.Peer(there, agent, role="client") as other,
    ):
        links = peer.connection, other.connection
        rounds = 0
        while (messages := sum(link.statistics().frames_in for link in links)) < MANY:
            rounds += 1
            await mix(peer, other, v1.SessionId(f"session {rounds}"))
            if messages > MANY // 5 and "early" not in figures:
                figures["early"] = settled()
        figures["late"] = settled()
        figures["messages"] = messages
        figures["left"] = sum(len(link._open.outgoing) + len(link._open._abandoned) for link in links)
    return figures


async def mix(peer, other, session_id):
    for number in range(300):
        await other.notify(v1.SessionNotification(session_id, v1.AgentMessageChunk.of("x")))
        await other.notify_raw("_memory/note", {"sessionId": session_id, "number": number})
    params = {"sessionId": session_id}
    await asyncio.gather(*(peer.request_raw("_memory/ask", params) for _ in range(100)))
    await asyncio.gather(*(peer.request_raw("_memory/now", params) for _ in range(100)))
    cancelled = [asyncio.ensure_future(peer.request_raw("_memory/ask", params)) for _ in range(20)]
    await asyncio.sleep(0)
    for request in cancelled:
        request.cancel()
    await asyncio.wait(cancelled)
    unknown = (peer.request_raw("_memory/unknown", params) for _ in range(10))
    await asyncio.gather(*unknown, return_exceptions=True)


def settled():
    """Blocks that Python has allocated, and bytes of memory, once what can be collected is."""
    gc.collect()
    return {"blocks": sys.getallocatedblocks(), "memory": memory("VmRSS")}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(globals()[sys.argv[1]]())))
