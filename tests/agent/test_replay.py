"""What a replay tells amounts to what the record amounts to, in either version."""

import json
import random

import msgspec
import pytest

from accord.agent import replay_v2
from accord.agent.entries import marked, read
from accord.agent.folded_record import FoldedRecord
from accord.agent.record import encoded_update
from accord.agent.replay import closing, replay
from accord.capabilities import Capabilities
from accord.schema import codec, v1, v2
from accord.schema.base import Unknown
from accord.state import Message, SessionState
from tests.folding import Script, joined

SEEDS = range(400)
KNOWS_ALL = Capabilities(
    v1.ClientCapabilities(
        plan=v1.PlanCapabilities(),
        session=v1.ClientSessionCapabilities(compaction=v1.CompactionCapabilities()),
        subagents=v1.SubagentCapabilities(),
    )
)
KNOWS_LITTLE = Capabilities(v1.ClientCapabilities())
UPDATES = {1: v1.SessionUpdate, 2: v2.SessionUpdate}


def entries(seed, *versions):
    """The entries of a random session, written by agents that spoke these versions one after the other."""
    dice = random.Random(seed)
    made = []
    for version in versions:
        script = Script(dice, version)
        made += [marked(json.dumps(script.update()).encode(), version) for _ in range(dice.randint(1, 30))]
    return made


def recorded(some_entries):
    record = FoldedRecord()
    for entry in some_entries:
        record.add(read(entry))
    return record


def replayed(record, version, capabilities=KNOWS_ALL):
    """The replay of a record, as it arrives at the client."""
    return [codec.decode(encoded_update(update), UPDATES[version]) for update in replay(record, version, capabilities)]


def folded(updates):
    state = SessionState()
    state.add_all(updates)
    return state


def seen(state):
    """Everything in a state that a replay must bring back; lists and tuples are the same."""
    names = (
        "timeline plan plan_id plans mode modes config unknown_config usage title meta updated_at unknown "
        "subagents compactions session_messages terminals"
    )
    return {name: plain(getattr(state, name)) for name in names.split()}


def plain(value):
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, msgspec.Struct):
        return type(value).__name__, {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if hasattr(value, "read"):  # a compaction, or a message between sessions
        names = {slot for cls in type(value).__mro__ for slot in getattr(cls, "__slots__", ())} - {"_blocks", "run"}
        return {name: plain(getattr(value, name)) for name in names} | {"content": plain(value.read())}
    if hasattr(value, "exit_status"):
        shown = "id command cwd output text exit_status size capabilities meta".split()
        return {name: plain(getattr(value, name)) for name in shown}
    return value


@pytest.mark.parametrize("version", [1, 2])
def test_a_replay_in_the_same_version_amounts_to_the_record(version):
    for seed in SEEDS:
        record = recorded(entries(seed, version))
        told = replayed(record, version)
        assert seen(folded(told)) == seen(record.state), f"seed {seed}"


def test_a_replay_to_a_client_that_holds_the_session_already_changes_nothing():
    for seed in SEEDS:
        record, held = recorded(entries(seed, 2)), recorded(entries(seed, 2)).state
        held.add_all(replayed(record, 2))
        both = seen(held), seen(record.state)
        for each in both:
            del each["unknown"]  # unknown updates are events: the client has them twice
        assert both[0] == both[1], f"seed {seed}"


@pytest.mark.parametrize("version", [1, 2])
def test_a_replay_of_a_replay_is_the_same(version):
    for seed in SEEDS:
        told = replayed(recorded(entries(seed, version)), version)
        record = FoldedRecord()
        for update in told:
            record.add(update)
        assert replayed(record, version) == told, f"seed {seed}"


def without_nulls(meta):
    """`_meta` as version 2 keeps it: a key with `null` is removed."""
    return {key: value for key, value in (meta or {}).items() if value is not None}


def common(state):
    """What both versions can say of a session."""
    steps = {"cancelled": "completed", "_odd": "pending"}
    statuses = {"paused": "in_progress", "cancelled": "failed", "_odd": "in_progress"}
    messages, calls = [], []
    for entry in state.timeline:
        if not isinstance(entry, Message):
            kind = entry.kind if entry.kind != "_dream" else "other"
            texts = [part for part in entry.content if isinstance(part, v1.Content)]
            texts = [part.content for part in texts]
            calls.append(
                (
                    entry.id,
                    entry.title,
                    kind,
                    statuses.get(entry.status, entry.status),
                    entry.raw_input,
                    entry.raw_output,
                    entry.name,
                    plain(entry.locations),
                    without_nulls(entry.meta),
                    [block.text for block in texts if isinstance(block, v1.TextContent) and "```" not in block.text],
                )
            )
        elif content := joined(codec.plain(list(entry.content))):
            messages.append((entry.speaker, content))
    return {
        "messages": messages,
        "calls": calls,
        "plan": [(step.content, step.priority, steps.get(step.status, step.status)) for step in state.plan],
        "plans": set(state.plans),
        "config": plain(state.config),
        "usage": plain(state.usage),
        "info": (state.title, state.updated_at, without_nulls(state.meta)),
        "compactions": {
            name: (it.status, plain(it.error), joined(codec.plain(list(it.summary))), without_nulls(it.meta))
            for name, it in state.compactions.items()
        },
        "subagents": {
            name: (it.title, it.cwd, type(it.state), without_nulls(it.meta)) for name, it in state.subagents.items()
        },
        "letters": {name: joined(codec.plain(list(it.content))) for name, it in state.session_messages.items()},
        "unknown": plain(state.unknown),
    }


@pytest.mark.parametrize("written", [(1,), (2,), (1, 2), (2, 1)], ids=str)
@pytest.mark.parametrize("version", [1, 2])
def test_a_replay_in_either_version_tells_what_both_can_say(written, version):
    for seed in SEEDS:
        record = recorded(entries(seed, *written))
        told = folded(replayed(record, version))
        ours, theirs = common(told), common(record.state)
        for each in ours, theirs:
            # The plan without an id is the plan `main` in version 2.
            each["plans"].discard("main")
        if record.state.plan_id is not None if version == 1 else record.plan is None:
            del ours["plan"], theirs["plan"]  # in version 2 it is one of the plans with ids
        assert ours == theirs, f"seed {seed}"


def test_a_message_is_replayed_whole_with_its_id():
    record = FoldedRecord()
    for text in ("Hel", "lo", " there"):
        record.add(v1.AgentMessageChunk.of(text, v1.MessageId("m")))
    assert replayed(record, 1) == [v1.AgentMessageChunk.of("Hello there", v1.MessageId("m"))]
    assert replayed(record, 2) == [v2.AgentMessage(v2.MessageId("m"), [v2.TextContent("Hello there")], meta=None)]


def test_a_message_without_an_id_gets_one_in_version_2():
    record = FoldedRecord()
    record.add(v1.UserMessageChunk.of("Hi"))
    record.add(v1.AgentMessageChunk.of("Hello"))
    assert [update.message_id for update in replayed(record, 2)] == ["message-0", "message-1"]


def test_a_replayed_tool_call_resets_what_the_client_may_hold():
    record = FoldedRecord()
    record.add(v2.ToolCallProgress(v2.ToolCallId("t"), "Look"))
    [update] = list(replay_v2.replayed(record))
    assert json.loads(codec.encode(update)) == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "t",
        "title": "Look",
        "kind": "other",
        "status": "pending",
        "content": [],
        "locations": [],
        "rawInput": None,
        "rawOutput": None,
        "name": None,
        "capabilities": None,
        "_meta": None,
    }


def test_a_terminal_is_text_in_version_1_and_one_update_in_version_2():
    record = FoldedRecord()
    terminal, tool = v2.TerminalId("x"), v2.ToolCallId("t")
    for update in (
        v2.ToolCallProgress(tool, "Test", content=[v2.Terminal(terminal)]),
        v2.TerminalUpdate(terminal, "make test", "/w"),
        v2.TerminalOutputChunk.of(terminal, b"one\n"),
        v2.TerminalOutputChunk.of(terminal, b"two\n"),
        v2.TerminalUpdate(terminal, exit_status=v2.TerminalExitStatus(2)),
    ):
        record.add(update)
    [call] = replayed(record, 1)
    assert call.content == [v1.Content.of("```\n$ make test\none\ntwo\n(exit code 2)\n```")]
    call, shown = replayed(record, 2)
    assert call.content == [v2.Terminal(terminal)]
    assert (shown.output, shown.exit_status) == (v2.TerminalOutput.of(b"one\ntwo\n"), v2.TerminalExitStatus(2))


def test_a_diff_is_a_diff_in_version_1_where_its_patch_has_the_whole_texts_and_else_text():
    record = FoldedRecord()
    whole = v2.Diff.of("/a", "b\n", "a\n")
    moved = v2.Diff([v2.DiffMove("/a", "/b")])
    record.add(v2.ToolCallProgress(v2.ToolCallId("t"), "Edit", content=[whole, moved]))
    [call] = replayed(record, 1)
    assert call.content == [v1.Diff("/a", "b\n", "a\n"), v1.Content.of("```\nmoved /a to /b\n```")]


def test_a_client_of_version_1_without_plans_with_ids_gets_the_plan_that_was_updated_last():
    record = FoldedRecord()
    record.add(v2.PlanUpdate.of(v2.PlanId("a"), "one"))
    record.add(v2.PlanUpdate.of(v2.PlanId("b"), v2.PlanEntry.of("two", status="cancelled")))
    assert replayed(record, 1, KNOWS_LITTLE) == [v1.Plan.of(v1.PlanEntry.of("two", status="completed"))]
    assert [type(update) for update in replayed(record, 1)] == [v1.PlanUpdate, v1.PlanUpdate]


def test_an_unknown_update_stays_in_its_place_and_gets_no_meaning_in_the_other_version():
    record = FoldedRecord()
    strange = Unknown("_glow", {"sessionUpdate": "_glow"})
    newer = Unknown("agent_message", {"sessionUpdate": "agent_message", "messageId": "m"})
    for update in (v1.UserMessageChunk.of("a"), strange, newer, v1.AgentMessageChunk.of("b")):
        record.add(update)
    assert replayed(record, 1)[1:3] == [strange, newer]
    assert [type(update) for update in replayed(record, 2)] == [v2.UserMessage, Unknown, v2.AgentMessage]


def test_what_a_crash_has_left_open_is_closed_and_what_is_alive_stays_open():
    record = FoldedRecord()
    for name in ("dead", "alive"):
        record.add(v2.ToolCallProgress(v2.ToolCallId(name), status="in_progress"))
        record.add(v2.TerminalUpdate(v2.TerminalId(f"{name}-terminal")))
    closed = list(closing(record, 2, alive={"alive", "alive-terminal"}))
    assert closed == [
        v2.ToolCallProgress(v2.ToolCallId("dead"), status="failed", capabilities=None),
        v2.TerminalUpdate(v2.TerminalId("dead-terminal"), exit_status=v2.TerminalExitStatus(), capabilities=None),
    ]
    assert [update.tool_call_id for update in closing(record, 1)] == ["dead", "alive"]
