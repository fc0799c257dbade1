"""What a replay tells amounts to what the record amounts to, in either version."""

import json
import random

import msgspec
import pytest

from accord.agent.record import encoded_update
from accord.agent.replay_tree import PART, Replay
from accord.schema import codec, v1, v2
from accord.schema.base import Unknown
from accord.schema.capabilities import Capabilities
from accord.session import Message, SessionState
from accord.session.replay_scan import Survey, marked, read
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


def entries_of(version, *updates):
    """These updates as entries of this version."""
    return [marked(encoded_update(update), version) for update in updates]


def recorded(some_entries):
    """What the entries amount to."""
    return folded(map(read, some_entries))


def replayed(some_entries, version, capabilities=KNOWS_ALL, *, page=7, closes=False):
    """The replay of a record, as it arrives at the client; pages of the record are this long."""
    survey = Survey()
    for entry in some_entries:
        survey.add(entry)
    replay, told = Replay(survey, version, capabilities), []
    for number, entry in enumerate(some_entries, 1):
        replay.add(read(entry))
        if number % page == 0:
            told += replay.now()
    told += replay.rest()
    if closes:
        told += replay.closing()
    return [codec.decode(encoded_update(update), UPDATES[version]) for update in told]


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
        record = entries(seed, version)
        told = replayed(record, version, page=1 + seed % 9)
        assert seen(folded(told)) == seen(recorded(record)), f"seed {seed}"


def test_a_replay_to_a_client_that_holds_the_session_already_changes_nothing():
    for seed in SEEDS:
        record, held = entries(seed, 2), recorded(entries(seed, 2))
        held.add_all(replayed(record, 2))
        both = seen(held), seen(recorded(record))
        for each in both:
            del each["unknown"]  # unknown updates are events: the client has them twice
        assert both[0] == both[1], f"seed {seed}"


@pytest.mark.parametrize("version", [1, 2])
def test_a_replay_of_a_replay_is_the_same(version):
    for seed in SEEDS:
        told = replayed(entries(seed, version), version)
        again = [marked(encoded_update(update), version) for update in told]
        assert replayed(again, version) == told, f"seed {seed}"


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
            name: (it.title, it.cwd, type(it.state).__name__, without_nulls(it.meta))
            for name, it in state.subagents.items()
        },
        "letters": {name: joined(codec.plain(list(it.content))) for name, it in state.session_messages.items()},
        "unknown": plain(state.unknown),
    }


@pytest.mark.parametrize("written", [(1,), (2,), (1, 2), (2, 1)], ids=str)
@pytest.mark.parametrize("version", [1, 2])
def test_a_replay_in_either_version_tells_what_both_can_say(written, version):
    for seed in SEEDS:
        record = entries(seed, *written)
        known = recorded(record)
        ours, theirs = common(folded(replayed(record, version))), common(known)
        for each in ours, theirs:
            # The plan without an id is the plan `main` in version 2.
            each["plans"].discard("main")
        if known.plan_id is not None or (version == 2 and known.plans):
            del ours["plan"], theirs["plan"]  # in version 2 it is one of the plans with ids
        assert ours == theirs, f"seed {seed}"


def test_a_message_is_replayed_whole_with_its_id():
    chunks = [v1.AgentMessageChunk.of(text, v1.MessageId("m")) for text in ("Hel", "lo", " there")]
    record = entries_of(1, *chunks)
    assert replayed(record, 1) == [v1.AgentMessageChunk.of("Hello there", v1.MessageId("m"))]
    assert replayed(record, 2) == [v2.AgentMessage(v2.MessageId("m"), [v2.TextContent("Hello there")], meta=None)]


def test_a_message_without_an_id_gets_one_in_version_2():
    record = entries_of(1, v1.UserMessageChunk.of("Hi"), v1.AgentMessageChunk.of("Hello"))
    assert [update.message_id for update in replayed(record, 2)] == ["message-0", "message-1"]


@pytest.mark.parametrize("written", [1, 2])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("page", [1, 40, 10_000])
def test_a_long_message_is_told_in_parts_and_nothing_of_it_is_lost(written, version, page):
    chunk = (v1 if written == 1 else v2).AgentMessageChunk
    text = "".join(chr(0x1F600 + number % 50) + "x" * 9_999 for number in range(100))
    chunks = [chunk.of(text[at : at + 9_000], v1.MessageId("m")) for at in range(0, len(text), 9_000)]
    if written == 2:
        chunks.insert(20, v2.AgentMessage(v2.MessageId("m"), []))
        text = text[20 * 9_000 :]
    told = replayed(entries_of(written, *chunks), version, page=page)
    assert len(told) >= 3
    assert max(len(encoded_update(update)) for update in told) < 4 * PART
    [message] = folded(told).messages
    assert (message.id, message.text) == ("m", text)


def test_a_message_that_changes_late_is_told_in_its_place():
    record = entries_of(
        2,
        v2.AgentMessage.of(v2.MessageId("a"), "first"),
        *(v2.AgentMessage.of(v2.MessageId(f"m{number}"), "x") for number in range(50)),
        v2.AgentMessage.of(v2.MessageId("a"), "changed"),
    )
    told = replayed(record, 2, page=5)
    assert [update.message_id for update in told][:2] == ["a", "m0"]
    assert told[0].content == [v2.TextContent("changed")]


def test_a_replayed_tool_call_resets_what_the_client_may_hold():
    record = entries_of(2, v2.ToolCallProgress(v2.ToolCallId("t"), "Look"))
    [update] = replayed(record, 2)
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
    terminal, tool = v2.TerminalId("x"), v2.ToolCallId("t")
    record = entries_of(
        2,
        v2.ToolCallProgress(tool, "Test", content=[v2.Terminal(terminal)]),
        v2.TerminalUpdate(terminal, "make test", "/w"),
        v2.TerminalOutputChunk.of(terminal, b"one\n"),
        v2.TerminalOutputChunk.of(terminal, b"two\n"),
        v2.TerminalUpdate(terminal, exit_status=v2.TerminalExitStatus(2)),
    )
    [call] = replayed(record, 1, page=1)
    assert call.content == [v1.Content.of("```\n$ make test\none\ntwo\n(exit code 2)\n```")]
    call, shown = replayed(record, 2)
    assert call.content == [v2.Terminal(terminal)]
    assert (shown.output, shown.exit_status) == (v2.TerminalOutput.of(b"one\ntwo\n"), v2.TerminalExitStatus(2))


def test_a_diff_is_a_diff_in_version_1_where_its_patch_has_the_whole_texts_and_else_text():
    whole, moved = v2.Diff.of("/a", "b\n", "a\n"), v2.Diff([v2.DiffMove("/a", "/b")])
    [call] = replayed(entries_of(2, v2.ToolCallProgress(v2.ToolCallId("t"), "Edit", content=[whole, moved])), 1)
    assert call.content == [v1.Diff("/a", "b\n", "a\n"), v1.Content.of("```\nmoved /a to /b\n```")]


def test_a_client_of_version_1_without_plans_with_ids_gets_the_plan_that_was_updated_last():
    record = entries_of(
        2,
        v2.PlanUpdate.of(v2.PlanId("a"), "one"),
        v2.PlanUpdate.of(v2.PlanId("b"), v2.PlanEntry.of("two", status="cancelled")),
    )
    assert replayed(record, 1, KNOWS_LITTLE) == [v1.Plan.of(v1.PlanEntry.of("two", status="completed"))]
    assert [type(update) for update in replayed(record, 1)] == [v1.PlanUpdate, v1.PlanUpdate]


def test_an_unknown_update_stays_in_its_place_and_gets_no_meaning_in_the_other_version():
    strange = Unknown("_glow", {"sessionUpdate": "_glow"})
    newer = Unknown("agent_message", {"sessionUpdate": "agent_message", "messageId": "m"})
    record = entries_of(1, v1.UserMessageChunk.of("a"), strange, newer, v1.AgentMessageChunk.of("b"))
    assert replayed(record, 1)[1:3] == [strange, newer]
    assert [type(update) for update in replayed(record, 2)] == [v2.UserMessage, Unknown, v2.AgentMessage]


def test_what_a_crash_has_left_open_is_closed():
    record = entries_of(2, v2.ToolCallProgress(v2.ToolCallId("dead"), status="in_progress"))
    record += entries_of(2, v2.TerminalUpdate(v2.TerminalId("dead-terminal")))
    state = folded(replayed(record, 2, page=1, closes=True))
    assert [call.status for call in state.tool_calls.values()] == ["failed"]
    assert [terminal.exit_status for terminal in state.terminals.values()] == [v2.TerminalExitStatus()]
    assert {call.status for call in folded(replayed(record, 1, closes=True)).tool_calls.values()} == {"failed"}
