"""An agent that is killed at any step loses nothing that its client saw, and leaves every session readable."""

import asyncio
import json
import random
import signal
import sys
from pathlib import Path

import pytest

from accord import Handlers, Peer, SqliteStore, Unknown, memory_pair, v1
from accord.agent.record import Record
from accord.schema import codec, v2
from accord.testing import ScriptedPeer
from tests.agent.witness import CWD, Known, Witness, folded, must_hold
from tests.waiting import DEADLINE

RECORDER = Path(__file__).with_name("mortal_recorder.py")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")


class FirstWitness(Witness):
    """A client of version 1."""

    UPDATES = v1.SessionNotification

    async def greet(self):
        await self.peer.initialize(v1.InitializeRequest(1), timeout=DEADLINE)

    def take(self, notification):
        if not isinstance(notification.update, v1.AvailableCommandsUpdate | v1.UserMessageChunk):
            self.told.setdefault(notification.session_id, []).append(notification.update)

    async def ask(self, request):
        self.told = {}
        if isinstance(request, v1.LoadSessionRequest):
            return await self.load(request)
        try:
            return await self.peer.request(request, timeout=DEADLINE)
        finally:
            for session_id, updates in self.told.items():
                self.known.setdefault(session_id, Known()).updates += updates

    async def load(self, request):
        """Load a session and compare. A replay that death cuts short may lack what comes last, the title."""
        answer = await self.peer.request(request, timeout=DEADLINE)
        known, replayed = self.known[request.session_id], self.told.get(request.session_id, [])
        must_hold(folded(replayed), folded(known.updates))
        known.updates = list(replayed)
        return answer

    async def compare(self):
        """Everything that was ever seen is there, in order."""
        listed = {it.session_id: it for it in (await self.ask(v1.ListSessionsRequest())).sessions}
        assert not listed.keys() & self.deleted
        assert listed.keys() >= self.known.keys()
        for session_id, known in list(self.known.items()):
            answer = await self.ask(v1.LoadSessionRequest(session_id, CWD, []))
            replayed = self.told.get(session_id, [])
            assert {it.status for it in final_calls(replayed)} <= {"completed", "failed"}
            if known.mode is not None:
                assert answer.modes.current_mode_id == known.mode
            known.mode = answer.modes.current_mode_id

    async def work(self):
        await self.delete_old_ones(v1.DeleteSessionRequest)
        session_id = (await self.ask(v1.NewSessionRequest(CWD, []))).session_id
        known = self.known.setdefault(session_id, Known())
        await self.prompt(session_id, "first words")
        known.mode = None
        await self.ask(v1.SetSessionModeRequest(session_id, "code"))
        known.mode = "code"
        await self.prompt(session_id, "second")
        fork = (await self.ask(v1.ForkSessionRequest(session_id, CWD))).session_id
        self.known.setdefault(fork, Known()).updates[:0] = known.updates
        await self.prompt(fork, "in the fork")
        await self.ask(v1.CloseSessionRequest(fork))

    async def prompt(self, session_id, text):
        known = self.known[session_id]
        known.mode = None
        await self.ask(v1.PromptRequest.of(session_id, text))
        known.finished += 1
        said = [it.content.text for it in self.told[session_id] if isinstance(it, v1.AgentMessageChunk)]
        assert int(said[0]) >= known.finished
        assert " ".join(said[1:]) == text


def final_calls(updates):
    """Tool calls as their last update leaves them."""
    calls = {it.tool_call_id: it for it in updates if isinstance(it, v1.ToolCall | v1.ToolCallProgress) and it.status}
    return calls.values()


@pytest.fixture
def witness(tmp_path):
    return FirstWitness(tmp_path / "sessions.sqlite3")


async def test_an_agent_killed_before_a_statement_of_its_store(witness):
    # Each life begins with other sessions, so the work begins at another step; and each run begins elsewhere.
    for step in range(first := random.randint(1, 5), 80, 5):
        print(f"life {step} of those from {first} on")
        await witness.live(step=step)
    assert await witness.live()
    assert await witness.live()


async def test_an_agent_killed_when_its_client_has_seen_an_update(witness):
    for frames in range(first := random.randint(1, 5), 60, 5):
        print(f"life {frames} of those from {first} on")
        await witness.live(frames=frames)
    assert await witness.live()
    assert await witness.live()


# Entries of both versions


async def test_a_record_of_both_versions_holds_all_that_its_client_saw(tmp_path):
    file, seen = tmp_path / "sessions.sqlite3", []
    for step in [*range(first := random.randint(1, 6), 90, 6), 0]:
        print(f"life {step} of those from {first} on")
        seen += await frames_until_death(file, step)
        async with SqliteStore(file) as store:
            if (found := await store.find("s")) is None:
                assert seen == []
                continue
            state = await Record(store, found).history()
            must_hold_each(state, folded(seen))
            record = Record(store, await store.take("s"), 2)
            closed = folded(await told_again(record, 2))
            must_hold_each(closed, folded(seen))
            assert all(call.is_finished for call in closed.tool_calls.values())
            assert all(terminal.exit_status is not None for terminal in closed.terminals.values())
            must_hold_each(folded(await told_again(Record(store, await store.take("s"), 1), 1)), folded(seen))


async def frames_until_death(file, step):
    """The updates that a client has seen of one life of the recorder."""
    running = await asyncio.create_subprocess_exec(
        sys.executable, str(RECORDER), str(file), str(step), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await running.communicate()
    assert running.returncode == (0 if step == 0 else -signal.SIGKILL) or step > 60, "it died by itself"
    updates = [json.loads(line)["params"]["update"] for line in output.splitlines(keepends=True) if line[-1:] == b"\n"]
    return [as_update(update) for update in updates]


def as_update(raw):
    """An update of the version that it must have been sent in."""
    older = codec.convert(raw, v1.SessionUpdate)
    newer = codec.convert(raw, v2.SessionUpdate)
    return older if isinstance(newer, Unknown) or raw["sessionUpdate"] == "session_info_update" else newer


async def told_again(record, version):
    """The replay of a record, as it arrives at a client of this version."""
    here, there = memory_pair()
    updates = []
    async with ScriptedPeer(there) as client, Peer(here, Handlers(), role="agent") as peer:
        await record.replay(peer)
        peer.connection.tell(b'{"jsonrpc":"2.0","method":"_end"}')
        while (message := await client.receive())["method"] != "_end":
            updates.append(message["params"]["update"])
    return [codec.convert(raw, v1.SessionUpdate if version == 1 else v2.SessionUpdate) for raw in updates]


def must_hold_each(state, known):
    """Everything that is known by its id is in the state, and has grown if anything."""
    messages = {(message.speaker, message.id): message.text for message in state.messages}
    for message in known.messages:
        assert messages[message.speaker, message.id].startswith(message.text)
    for call in known.tool_calls.values():
        assert state.tool_calls[call.id].title == call.title
        assert not call.is_finished or state.tool_calls[call.id].status == call.status
    for terminal in known.terminals.values():
        if state.terminals:
            assert state.terminals[terminal.id].output.startswith(terminal.output)
    assert known.title is None or state.title == known.title
