"""A client that remembers across the lives of an agent that is killed: what is the same in both versions."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from accord import ConnectionClosed, Handlers, Peer, ProcessTransport
from accord.session import SessionState

AGENT = Path(__file__).with_name("mortal_agent.py")
CWD = "/project"
KEPT = 3
"""Sessions, at most: the oldest is deleted."""


class Known:
    """What the client knows of a session."""

    def __init__(self):
        self.updates = []
        """All that it was told, in order, but what is told again each time."""
        self.finished = 0
        """How many prompts have ended."""
        self.mode = None
        """The mode that the client was told last; None while it cannot know."""


class Witness:
    """A client that remembers across the lives of its agent. A subclass speaks one version:

    `UPDATES` is the class of its notifications; `greet`, `compare` and `work` are the life of a client, and `take`
    keeps an update.
    """

    def __init__(self, file):
        self.file = file
        self.known = {}
        self.deleted = set()
        self.told = {}
        """The updates since the request that is being made, by session."""

    async def live(self, *, step=0, frames=0):
        """One life of the agent: it dies before a step of its store, or when the client has got so many updates."""
        transport = ProcessTransport([sys.executable, str(AGENT), str(self.file), str(step)])
        seen = 0

        def update(notification):
            nonlocal seen
            seen += 1
            self.take(notification)
            if seen == frames:
                os.kill(transport.pid, signal.SIGKILL)

        handlers = Handlers()
        handlers.on(self.UPDATES)(update)
        with suppress(ConnectionClosed):
            async with Peer(transport, handlers, role="client", unstable=True) as self.peer:
                await self.greet()
                await self.compare()
                await self.work()
                return True
        return False

    async def delete_old_ones(self, request):
        while len(self.known) > KEPT:
            oldest = next(iter(self.known))
            del self.known[oldest]  # if the agent dies now, the client cannot know whether it is there
            await self.ask(request(oldest))
            self.deleted.add(oldest)


def folded(updates):
    """What these updates amount to."""
    state = SessionState()
    state.add_all(updates)
    return state


def must_hold(replayed, known):
    """Everything that is known is in the replay, in order; the replay may go on where the client saw no more."""
    assert len(replayed.timeline) >= len(known.timeline)
    for entry, before in zip(replayed.timeline, known.timeline, strict=False):
        assert type(entry) is type(before)
        assert entry.id == before.id
        assert entry.text.startswith(before.text)
    if known.title is not None:
        assert replayed.title == known.title
