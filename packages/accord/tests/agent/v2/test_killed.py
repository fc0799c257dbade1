"""An agent of version 2 that is killed at any step loses nothing that its client saw."""

from __future__ import annotations

import asyncio
import random
import sys

import pytest

from accord import ConnectionClosed, v1
from accord.schema import v2
from tests.agent.witness import CWD, Known, Witness, folded, must_hold
from tests.waiting import DEADLINE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")


class SecondWitness(Witness):
    """A client of version 2."""

    UPDATES = v2.UpdateSessionNotification

    async def greet(self):
        self.ends = asyncio.Queue()
        hello = v2.InitializeRequest(2, v2.Implementation("witness", "1"))
        assert (await self.peer.request(hello, timeout=DEADLINE)).protocol_version == 2

    def take(self, notification):
        self.told.setdefault(notification.session_id, []).append(notification.update)
        update = notification.update
        if isinstance(update, v2.SessionStateUpdate) and update.state == "idle" and update.stop_reason is not None:
            self.ends.put_nowait(update)

    async def ask(self, request):
        self.told = {}
        try:
            return await self.peer.request(request, timeout=DEADLINE, force=True)
        finally:
            if not isinstance(request, v2.PromptRequest):
                self.learn(replayed=isinstance(request, v2.ResumeSessionRequest))

    def learn(self, *, replayed=False):
        """Keep what was told since the last request; of a replay that broke off, nothing."""
        for session_id, updates in self.told.items():
            if not replayed:
                self.known.setdefault(session_id, Known()).updates += updates
        if not replayed:
            self.told = {}

    async def compare(self):
        """Everything that was ever seen is there, in order."""
        listed = {it.session_id for it in (await self.ask(v2.ListSessionsRequest())).sessions}
        assert not listed & self.deleted
        assert listed >= self.known.keys()
        for session_id, known in list(self.known.items()):
            request = v2.ResumeSessionRequest(session_id, CWD, replay_from=v2.ReplayFromStart())
            answer = await self.ask(request)
            replayed = self.told.get(session_id, [])
            assert isinstance(replayed[-1], v2.SessionStateUpdate), "the state comes last, before the answer"
            assert (replayed[-1].state, replayed[-1].stop_reason) == ("idle", None)
            state = folded(replayed)
            must_hold(state, folded(known.updates))
            assert all(call.is_finished for call in state.tool_calls.values())
            mode = next(it for it in answer.config_options if it.category == "mode").current_value
            assert known.mode in (None, mode)
            known.mode, known.updates = mode, list(replayed)

    async def work(self):
        await self.delete_old_ones(v2.DeleteSessionRequest)
        session_id = (await self.ask(v2.NewSessionRequest(CWD))).session_id
        known = self.known.setdefault(session_id, Known())
        await self.prompt(session_id, "first words")
        known.mode = None
        await self.ask(v2.SetSessionConfigOptionId(session_id, v1.SessionConfigId("mode"), "code"))
        known.mode = "code"
        await self.prompt(session_id, "second")
        fork = (await self.ask(v2.ForkSessionRequest(session_id, CWD))).session_id
        self.known.setdefault(fork, Known()).updates[:0] = known.updates
        await self.prompt(fork, "in the fork")
        await self.ask(v2.CloseSessionRequest(fork))

    async def prompt(self, session_id, text):
        """Send a prompt, and wait until its work has ended."""
        known = self.known[session_id]
        known.mode = None
        try:
            receipt = await self.ask(v2.PromptRequest.of(session_id, text))
            end = await self.end_of_work()
            told = self.told[session_id]
        finally:
            self.learn()
        known.finished += 1
        assert end.stop_reason == "end_turn"
        assert [it.message_id for it in told if isinstance(it, v2.UserMessage)] == [receipt.message_id]
        said = [it.content.text for it in told if isinstance(it, v2.AgentMessageChunk)]
        assert int(said[0]) >= known.finished
        assert " ".join(said[1:]) == text

    async def end_of_work(self):
        """The next idle state with a stop reason; raises ConnectionClosed if the agent dies first."""
        getting = asyncio.ensure_future(self.ends.get())
        closing = asyncio.ensure_future(self.peer.connection.closed())
        try:
            await asyncio.wait([getting, closing], timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                return getting.result()
            assert closing.done(), "no end of the work"
            raise ConnectionClosed("closed")
        finally:
            getting.cancel()
            closing.cancel()


@pytest.fixture
def witness(tmp_path):
    return SecondWitness(tmp_path / "sessions.sqlite3")


async def test_an_agent_of_version_2_killed_before_a_statement_of_its_store(witness):
    # Each life begins with other sessions, so the work begins at another step; and each run begins elsewhere.
    for step in range(first := random.randint(1, 5), 80, 5):
        print(f"life {step} of those from {first} on")
        await witness.live(step=step)
    assert await witness.live()
    assert await witness.live()


async def test_an_agent_of_version_2_killed_when_its_client_has_seen_an_update(witness):
    for frames in range(first := random.randint(1, 5), 80, 5):
        print(f"life {frames} of those from {first} on")
        await witness.live(frames=frames)
    assert await witness.live()
    assert await witness.live()
