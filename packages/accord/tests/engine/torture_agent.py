"""An agent that does what its prompts say, however bad; `test_torture.py` starts it: `torture_agent.py SEED VERSION`.

A prompt is a word and a number, a name for it before them: `17 stream 200`. What the turn sent stands in the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import accord
from accord.schema import v1, v2

ECHO = "_torture/echo"
JUNK = [
    b"not JSON",
    b"{",
    b"[]",
    b"{}",
    b"null",
    b"\xff\xfe",
    b"",
    b'{"jsonrpc":"2.0","id":99999999,"result":{}}',
    b'{"jsonrpc":"2.0","id":99999999,"result":{},"error":{}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"whatever"}}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"fs/read_text_file"}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7}}',
    b'{"jsonrpc":"2.0","method":"_torture/unknown"}',
    b'{"jsonrpc":"2.0","method":"_torture/large","params":{"x":"' + b"x" * 300_000 + b'"}}',
    b"[" * 100_000,
]

seed, version = int(sys.argv[1]), int(sys.argv[2])
schema = v1 if version == 1 else v2
chance = random.Random(seed)
handlers = accord.Handlers()
sessions = count()
turns: dict[str, asyncio.Task] = {}


class Planned(Exception):
    pass


PLANNED = (accord.ConnectionClosed, accord.PeerError, Planned)


class Unplanned(logging.Filter):
    """Lets through what nobody asked for: the link may end, requests may be cancelled, and turns are told to fail."""

    def filter(self, record):
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ExceptionGroup) and error.split(PLANNED)[1] is None:
            return False
        return not isinstance(error, PLANNED) and record.levelno > logging.WARNING


@handlers.on(schema.InitializeRequest)
def initialize(_):
    meta = {"pid": os.getpid()}
    if version == 1:
        return v1.InitializeResponse(protocol_version=1, meta=meta)
    return v2.InitializeResponse(2, v2.Implementation("torture", "1"), meta=meta)


@handlers.on(schema.NewSessionRequest)
def new_session(_):
    return schema.NewSessionResponse(v1.SessionId(str(next(sessions))))


@handlers.on(v1.CancelNotification if version == 1 else v2.CancelSessionNotification)
def cancel(notification):
    if turn := turns.get(notification.session_id):
        turn.cancel()


def ended(word, sent):
    """The answer to a prompt: with how its turn ended, which in version 2 stands where the message's id is."""
    answer = v1.PromptResponse if version == 1 else v2.PromptResponse
    return answer(word, meta={"sent": sent})


@handlers.on_request(ECHO)
async def echo(params, context):
    if params["depth"]:
        await context.peer.request_raw(ECHO, {**params, "depth": params["depth"] - 1})
    return params


@handlers.on_notification("_torture/note")
async def note(params, context):
    """A notification whose handler takes its time, and asks back."""
    await turn_the_loop()
    if params["depth"]:
        await context.peer.request_raw(ECHO, {**params, "depth": params["depth"] - 1})


@handlers.on(schema.PromptRequest)
async def prompt(request, context):
    turn = Turn(request, context.peer)
    turns[request.session_id] = asyncio.current_task()
    try:
        await getattr(turn, turn.verb)()
    except asyncio.CancelledError:
        if chance.random() < 0.3:
            raise
        return ended("cancelled", turn.sent)
    finally:
        if turns.get(request.session_id) is asyncio.current_task():
            del turns[request.session_id]
    return ended("end_turn", turn.sent)


async def turn_the_loop(most=5):
    for _ in range(chance.randint(0, most)):
        await asyncio.sleep(0)


def leave_somebody_behind():
    """A process in our group that takes no hint."""
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
    # It holds our standard error, which so has no end before its own; and nobody here will ask how it ended.
    subprocess.Popen([sys.executable, "-I", "-S", "-c", deaf], stdout=subprocess.DEVNULL).returncode = 0


def cut(half):
    """Put nothing in the place of every descriptor of this pipe: the other side learns that nobody holds it."""
    pipe, nothing = os.fstat(half._fd).st_ino, os.open(os.devnull, os.O_RDWR)
    for entry in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            if os.fstat(fd := int(entry.name)).st_ino == pipe:
                os.dup2(nothing, fd)


class Turn:
    def __init__(self, request, peer):
        self.name, self.verb, number = request.prompt[0].text.split()
        self.number = int(number)
        self.session_id = request.session_id
        self.peer = peer
        self.sent = 0

    async def update(self):
        text = f"{self.name} {self.sent}"
        self.sent += 1
        if version == 1:
            await self.peer.notify(v1.SessionNotification(self.session_id, v1.AgentMessageChunk.of(text)))
        else:
            chunk = v2.AgentMessageChunk.of(text, v2.MessageId(self.name))
            await self.peer.notify(v2.UpdateSessionNotification(self.session_id, chunk))

    async def stream(self):
        for _ in range(self.number):
            await self.update()

    async def flood(self):
        while True:
            await self.update()

    async def wait(self):
        await asyncio.get_running_loop().create_future()

    async def ask(self):
        for depth in range(self.number % 5):
            params = {"sessionId": self.session_id, "depth": depth}
            assert await self.peer.request_raw(ECHO, params) == params
            await self.update()

    async def both(self):
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(self.ask())
                group.create_task(self.stream())

    async def fail(self):
        raise Planned

    async def junk(self):
        for _ in range(self.number % 10):
            self.peer.connection.transport.send([chance.choice(JUNK)])
            await self.update()

    async def orphan(self):
        leave_somebody_behind()
        await self.update()

    async def crash(self):
        chance.choice([lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGSEGV)])()

    async def deaf(self):
        self.peer.connection.transport.pause_reading()

    async def lose_input(self):
        cut(self.peer.connection.transport._reader)

    async def lose_output(self):
        cut(self.peer.connection.transport._writer)

    async def leave(self):
        await self.peer.close()


async def main():
    async with accord.Peer(accord.StdioTransport.standard(), handlers, role="agent") as peer:
        await peer.connection.closed()


if __name__ == "__main__":
    logging.basicConfig(format="%(name)s: %(message)s")
    logging.getLogger().handlers[0].addFilter(Unplanned())
    accord.run(main(), uvloop=seed % 3 == 1)
