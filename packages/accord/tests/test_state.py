"""What a session's updates amount to."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from accord import v1
from accord.schema import codec
from accord.schema.base import Unknown
from accord.session import MOST_META, Message, SessionState, SubagentState, ToolCallState
from accord.session.values import JoinedText, mended, whole_part

THUMB = "\U0001f44d"
HIGH, LOW = "\ud83d", "\udc4d"


def folded(*updates: v1.SessionUpdate) -> SessionState:
    state = SessionState()
    state.add_all(updates)
    return state


def read(update: str) -> v1.SessionUpdate:
    """An update as it comes from the wire."""
    return codec.decode(update.encode(), v1.SessionUpdate)


def agent(text: str, message_id: str | None = None) -> v1.AgentMessageChunk:
    return v1.AgentMessageChunk.of(text, None if message_id is None else v1.MessageId(message_id))


def said(state: SessionState) -> list[tuple[str, str]]:
    return [(message.speaker, message.text) for message in state.messages]


def call(call_id: str, title: str = "Look", **fields: Any) -> v1.ToolCall:
    return v1.ToolCall(v1.ToolCallId(call_id), title, **fields)


def progress(call_id: str, **fields: Any) -> v1.ToolCallProgress:
    return v1.ToolCallProgress(v1.ToolCallId(call_id), **fields)


# Messages


@pytest.mark.requirement("message.id.null-is-absent")
def test_chunks_of_one_speaker_that_follow_each_other_are_one_message() -> None:
    state = folded(
        v1.AgentThoughtChunk.of("Hm"),
        v1.AgentThoughtChunk.of("m."),
        agent("Hel"),
        agent("lo"),
        v1.UserMessageChunk.of("?"),
    )
    assert said(state) == [("thought", "Hmm."), ("agent", "Hello"), ("user", "?")]


def test_a_tool_call_parts_messages_and_a_setting_does_not() -> None:
    state = folded(agent("a"), v1.Plan.of("x"), agent("b"), call("1"), agent("c"))
    assert [type(entry) for entry in state.timeline] == [Message, ToolCallState, Message]
    assert said(state) == [("agent", "ab"), ("agent", "c")]


@pytest.mark.requirement("message.id.divides")
def test_chunks_with_an_id_find_their_message_wherever_it_stands() -> None:
    state = folded(agent("a", "1"), agent("x", "2"), call("1"), agent("b", "1"), agent("y", "2"))
    assert said(state) == [("agent", "ab"), ("agent", "xy")]
    assert [message.id for message in state.messages] == ["1", "2"]


def test_another_id_is_another_message_though_nothing_stands_between() -> None:
    assert said(folded(agent("a", "1"), agent("b", "2"), agent("c", "1"))) == [("agent", "ac"), ("agent", "b")]


def test_the_end_of_a_turn_ends_its_last_message() -> None:
    state = folded(agent("a"))
    state.end_turn()
    state.add(agent("b"))
    assert said(state) == [("agent", "a"), ("agent", "b")]


def test_an_emoji_cut_in_two_by_chunks_arrives_whole() -> None:
    state = folded(agent("Good " + HIGH), agent(LOW + "!"))
    assert said(state) == [("agent", f"Good {THUMB}!")]


def test_an_emoji_cut_in_two_on_the_wire_arrives_whole() -> None:
    chunk = rb'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}'
    halves = [codec.decode(chunk % half, v1.SessionUpdate) for half in (rb"\ud83d", rb"\udc4d")]
    assert said(folded(*halves)) == [("agent", THUMB)]


def test_a_half_without_its_other_half_stays() -> None:
    assert said(folded(agent("a" + HIGH), agent("b"))) == [("agent", f"a{HIGH}b")]
    assert said(folded(agent("a" + HIGH))) == [("agent", f"a{HIGH}")]


def test_content_that_is_no_plain_text_stays_as_it_came() -> None:
    picture = v1.ImageContent.from_bytes(b"x", "image/png")
    noted = v1.TextContent("t", v1.Annotations(priority=1.0))
    state = folded(agent("a"), agent("b"), v1.AgentMessageChunk(picture), v1.AgentMessageChunk(noted), agent("c"))
    assert state.messages[0].content == (v1.TextContent("ab"), picture, noted, v1.TextContent("c"))
    assert state.messages[0].text == "abtc"


def test_a_prompt_that_the_agent_repeats_is_there_once() -> None:
    state = SessionState()
    state.add_prompt([v1.TextContent("Hi there")])
    state.add(v1.UserMessageChunk.of("Hi ", v1.MessageId("7")))
    state.add(v1.UserMessageChunk.of("there", v1.MessageId("7")))
    state.add(agent("Hello"))
    assert said(state) == [("user", "Hi there"), ("agent", "Hello")]
    assert state.messages[0].id == "7"


# Tool calls


@pytest.mark.requirement("tool.update.omitted-stays")
def test_a_tool_call_keeps_what_its_updates_leave_out() -> None:
    diff, place = v1.Diff("/a", "new"), v1.ToolCallLocation("/a", 3)
    state = folded(
        call("1", "Edit", kind="edit", locations=[place], raw_input={"a": 1}),
        progress("1", status="in_progress", content=[diff]),
        progress("1", status="completed", raw_output=[2]),
    )
    assert state.tool_calls[v1.ToolCallId("1")] == ToolCallState(
        v1.ToolCallId("1"), "Edit", "edit", "completed", [diff], [place], {"a": 1}, [2]
    )
    assert len(state.timeline) == 1


def test_a_tool_calls_meta_grows_up_to_a_bound_and_keeps_the_newest() -> None:
    updates = [progress("1", meta={f"key-{number}": number}) for number in range(MOST_META + 10)]
    state = folded(call("1", meta={"first": True}), *updates)
    meta = state.tool_calls[v1.ToolCallId("1")].meta
    assert meta == {f"key-{number}": number for number in range(10, MOST_META + 10)}


@pytest.mark.requirement("tool.update.lists-replaced")
def test_a_list_in_a_tool_calls_update_replaces_the_one_before() -> None:
    first, second = v1.Content.of("a"), v1.Content.of("b")
    state = folded(call("1", content=[first]), progress("1", content=[second]))
    assert list(state.tool_calls[v1.ToolCallId("1")].content) == [second]
    state.add(progress("1", content=[]))
    assert list(state.tool_calls[v1.ToolCallId("1")].content) == []


def test_a_tool_call_gives_its_diffs_and_its_text_apart() -> None:
    image = v1.Content(v1.ImageContent("AAAA", "image/png"))
    diff = v1.Diff("/a.txt", "new", "old")
    content = [v1.Content.of("one"), diff, image, v1.Terminal(v1.TerminalId("t")), v1.Content.of("two")]
    call = ToolCallState(v1.ToolCallId("1"), content=content)
    assert call.diffs == [diff]
    assert call.text == "one\ntwo"


def test_an_update_of_a_tool_call_that_was_never_begun_begins_it() -> None:
    state = folded(progress("1", status="completed"))
    assert state.tool_calls[v1.ToolCallId("1")].status == "completed"
    assert state.tool_calls[v1.ToolCallId("1")].title == ""


def test_what_a_permission_request_says_of_its_tool_call_is_folded_too() -> None:
    state = folded(call("1", "Edit"))
    state.add(v1.ToolCallUpdate(v1.ToolCallId("1"), kind="edit"))
    assert state.tool_calls[v1.ToolCallId("1")].kind == "edit"


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ([], "cancelled"),
        (["failed"], "cancelled"),
        (["in_progress", "failed"], "cancelled"),
        (["in_progress", "completed"], "completed"),
    ],
)
def test_a_call_of_a_cancelled_turn_stays_cancelled_unless_it_completes(told: list[Any], status: str) -> None:
    state = folded(call("1", status="failed"), call("2", status="pending"))
    state.cancel_unfinished()
    for each in told:
        state.add(progress("2", status=each))
    assert [it.status for it in state.tool_calls.values()] == ["failed", status]
    state.add(call("2", status="failed"))
    assert state.tool_calls[v1.ToolCallId("2")].status == "failed", "a later call may have the same id"


def test_cancelling_marks_only_what_was_not_finished_and_later_updates_still_count() -> None:
    state = folded(call("1", status="completed"), call("2"), call("3", status="in_progress"))
    state.cancel_unfinished()
    assert [state.tool_calls[v1.ToolCallId(it)].status for it in "123"] == ["completed", "cancelled", "cancelled"]
    state.add(progress("3", status="completed"))
    assert state.tool_calls[v1.ToolCallId("3")].status == "completed"


# Settings and the rest


@pytest.mark.requirement("plan.replaced-whole")
def test_settings_are_as_the_last_update_left_them() -> None:
    command = v1.AvailableCommand.of("test", "Run the tests")
    option = v1.SessionConfigBoolean(v1.SessionConfigId("fast"), "Fast", current_value=True)
    state = folded(
        v1.Plan.of("a", "b"),
        v1.Plan.of("c"),
        v1.AvailableCommandsUpdate([command]),
        v1.CurrentModeUpdate(v1.SessionModeId("ask")),
        v1.ConfigOptionUpdate([option]),
        v1.UsageUpdate(10, 100),
        v1.Notice("warning", "Careful"),
    )
    assert [entry.content for entry in state.plan] == ["c"]
    assert state.commands == [command]
    assert state.mode == "ask"
    assert state.option("fast") == option
    assert state.usage == v1.UsageUpdate(10, 100)
    assert [notice.title for notice in state.notices] == ["Careful"]
    assert state.timeline == ()


@pytest.mark.requirement("commands.replaced-whole", "config.replaced-whole")
def test_a_new_list_of_commands_or_options_replaces_the_one_before() -> None:
    commands = [v1.AvailableCommand.of(name, name) for name in ("test", "build")]
    options = [v1.SessionConfigBoolean(v1.SessionConfigId(name), name, current_value=True) for name in ("a", "b")]
    state = folded(v1.AvailableCommandsUpdate(commands), v1.ConfigOptionUpdate([options[0], options[1]]))
    state.add_all([v1.AvailableCommandsUpdate(commands[1:]), v1.ConfigOptionUpdate([options[1]])])
    assert (state.commands, state.config) == (commands[1:], [options[1]])


@pytest.mark.requirement("message.id.opaque")
def test_message_ids_are_compared_and_nothing_else() -> None:
    ids = ["2", "10", "02", "2 ", "m-2", "M-2", "msg_1", "", "é", "e\u0301"]
    state = folded(*(agent(str(place), it) for place, it in enumerate(ids)), *(agent("!", it) for it in reversed(ids)))
    assert [message.text for message in state.messages] == [f"{place}!" for place in range(len(ids))]
    assert [message.id for message in state.messages] == ids


@pytest.mark.requirement("tool.defaults")
def test_a_tool_call_that_says_neither_kind_nor_status_is_another_one_and_pending() -> None:
    bare = codec.decode(b'{"sessionUpdate":"tool_call","toolCallId":"1","title":"Look"}', v1.SessionUpdate)
    state = folded(bare)
    assert (state.tool_calls[v1.ToolCallId("1")].kind, state.tool_calls[v1.ToolCallId("1")].status) == (
        "other",
        "pending",
    )


@pytest.mark.requirement("session.info.in-order", "session.info.null-clears", "session.info.omitted-stays")
def test_a_title_left_out_stays_and_null_clears_it() -> None:
    state = folded(v1.SessionInfoUpdate(title="A", updated_at="2026"), v1.SessionInfoUpdate(updated_at="2027"))
    assert (state.title, state.updated_at) == ("A", "2027")
    state.add(v1.SessionInfoUpdate(title=None))
    assert (state.title, state.updated_at) == (None, "2027")


@pytest.mark.requirement("plan.operations.by-id")
@pytest.mark.requirement("plan.operations.removed")
def test_plans_with_an_id_come_and_go_by_themselves() -> None:
    first, second = v1.PlanId("1"), v1.PlanId("2")
    state = folded(
        v1.PlanUpdate(v1.PlanMarkdown(first, "a")),
        v1.PlanUpdate(v1.PlanMarkdown(second, "c", "/p")),
        v1.PlanUpdate(v1.PlanMarkdown(first, "b")),
        v1.PlanRemoved(second),
    )
    assert state.plans == {first: v1.PlanMarkdown(first, "b")}


@pytest.mark.requirement("update.unknown-ignored")
def test_updates_that_nobody_here_knows_are_kept() -> None:
    hologram = Unknown("hologram", {"sessionUpdate": "hologram"})
    assert folded(agent("a"), hologram, agent("b")).unknown == [hologram]


def test_a_summary_grows_by_its_chunks_and_an_update_replaces_it() -> None:
    compaction = v1.CompactionId("1")
    state = folded(
        v1.CompactionUpdate(compaction, "in_progress"),
        v1.CompactionSummaryChunk(compaction, v1.TextContent("so ")),
        v1.CompactionSummaryChunk(compaction, v1.TextContent("far")),
    )
    assert state.compactions[compaction].summary == (v1.TextContent("so far"),)
    state.add(v1.CompactionUpdate(compaction, "completed", [v1.TextContent("done")]))
    assert state.compactions[compaction].summary == (v1.TextContent("done"),)
    assert state.compactions[compaction].status == "completed"


def test_null_clears_a_compaction_and_what_is_left_out_stays() -> None:
    compaction = v1.CompactionId("1")
    state = folded(v1.CompactionUpdate(compaction, "failed", [v1.TextContent("half")], "out of memory"))
    state.add(read('{"sessionUpdate":"compaction_update","compactionId":"1","status":"in_progress"}'))
    assert (state.compactions[compaction].error, len(state.compactions[compaction].summary)) == ("out of memory", 1)
    state.add(
        read(
            '{"sessionUpdate":"compaction_update","compactionId":"1","status":"completed","summary":null,"error":null}'
        )
    )
    assert (state.compactions[compaction].error, state.compactions[compaction].summary) == (None, ())


def test_what_a_subagents_update_leaves_out_stays() -> None:
    state = folded(
        v1.SubagentUpdate(v1.SessionId("s"), title="Search"),
        v1.SubagentUpdate(v1.SessionId("s"), description="in /src"),
    )
    assert state.subagents[v1.SessionId("s")] == SubagentState(v1.SessionId("s"), "Search", "in /src")


def test_null_clears_what_is_known_of_a_subagent() -> None:
    state = folded(
        v1.SubagentUpdate(v1.SessionId("s"), "Search", "in /src", state=v1.RunningStateUpdate(), meta={"a": 1}),
        read('{"sessionUpdate":"subagent_update","sessionId":"s","description":null,"state":null}'),
    )
    assert state.subagents[v1.SessionId("s")] == SubagentState(v1.SessionId("s"), "Search", meta={"a": 1})


def test_a_message_between_sessions_grows_by_chunks_and_an_update_replaces_or_clears() -> None:
    state = folded(
        v1.SessionMessage(v1.MessageId("m"), sender_session_id=v1.SessionId("p")),
        v1.SessionMessageChunk(v1.MessageId("m"), v1.TextContent("Look ")),
        v1.SessionMessageChunk(v1.MessageId("m"), v1.TextContent("there")),
        read('{"sessionUpdate":"session_message","messageId":"m","recipientMessageId":"n"}'),
    )
    message = state.session_messages[v1.MessageId("m")]
    assert (message.sender_session_id, message.recipient_message_id) == ("p", "n")
    assert message.content == (v1.TextContent("Look there"),)
    state.add(read('{"sessionUpdate":"session_message","messageId":"m","senderSessionId":null,"content":null}'))
    assert (message.sender_session_id, message.recipient_message_id, message.content) == (None, "n", ())


def test_the_sessions_information_is_replaced_or_cleared_with_its_meta() -> None:
    state = folded(read('{"sessionUpdate":"session_info_update","title":"A","_meta":{"pinned":true}}'))
    state.add(read('{"sessionUpdate":"session_info_update","updatedAt":"2026-01-01T00:00:00Z"}'))
    assert (state.title, state.updated_at, state.meta) == ("A", "2026-01-01T00:00:00Z", {"pinned": True})
    state.add(read('{"sessionUpdate":"session_info_update","title":null,"_meta":null}'))
    assert (state.title, state.updated_at, state.meta) == (None, "2026-01-01T00:00:00Z", None)


# Watching and reading


def test_observers_are_told_of_every_change_until_they_leave() -> None:
    state, seen = SessionState(), list[Any]()
    leave = state.on_change(seen.append)
    state.add(agent("a"))
    state.cancel_unfinished()
    leave()
    state.add(agent("b"))
    assert seen == [agent("a"), None]


def test_a_snapshot_does_not_change() -> None:
    state = folded(agent("a"), call("1"))
    before = state.snapshot()
    state.add_all([agent("b"), progress("1", status="completed"), v1.Plan.of("x")])
    assert [type(entry) for entry in before.timeline] == [Message, ToolCallState]
    assert before.timeline[1] == ToolCallState(v1.ToolCallId("1"), "Look", content=[], locations=[])
    assert before.plan == ()
    assert len(state.snapshot().timeline) == 3


def test_reading_makes_only_what_has_changed() -> None:
    state = folded(agent("a"), call("1"), agent("b"))
    before = state.timeline
    assert state.timeline is before
    state.add(agent("c"))
    after = state.timeline
    assert (after[0] is before[0], after[1] is before[1], after[2] is before[2]) == (True, True, False)


def operations(do: Callable[[], object]) -> Counter[str]:
    """How many functions this calls, ours and C's, by name."""
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, what: Any) -> None:
        if event == "c_call":
            counted[what.__name__] += 1
        elif event == "call":
            counted[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        do()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("message_id", [None, "1"])
def test_a_message_of_100_000_chunks_costs_each_the_same(message_id: str | None) -> None:
    chunk, state = agent("word ", message_id), SessionState()
    state.add(chunk)

    def stream(times: int) -> None:
        for _ in range(times):
            state.add(chunk)

    few, many = operations(lambda: stream(1_000)), operations(lambda: stream(100_000))
    assert many.total() <= 101 * few.total()
    assert many["getvalue"] == many["read"] == 0  # the whole text is made when somebody reads it, and not before
    assert len(state.messages[0].text) == 101_001 * len("word ")


# Against a slow and simple fold

PIECES = st.text(alphabet=["a", " ", "é", HIGH, LOW, THUMB], max_size=3)
Chunk = type[v1.AgentMessageChunk] | type[v1.AgentThoughtChunk] | type[v1.UserMessageChunk]


@st.composite
def chunks(draw: st.DrawFn) -> v1.ContentChunk:
    of: list[Chunk] = [v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.UserMessageChunk]
    message_id = draw(st.sampled_from([None, None, v1.MessageId("1"), v1.MessageId("2")]))
    return draw(st.sampled_from(of)).of(draw(PIECES), message_id)


@st.composite
def calls(draw: st.DrawFn) -> v1.ToolCallProgress:
    statuses: list[v1.ToolCallStatus | None] = [None, "pending", "completed"]
    title, status = draw(st.sampled_from([None, "A", "B"])), draw(st.sampled_from(statuses))
    return v1.ToolCallProgress(v1.ToolCallId(draw(st.sampled_from("xy"))), title, status=status)


def simply(updates: list[Any]) -> list[Any]:
    """The timeline by the book: quadratic, and plain to see."""
    timeline: list[Any] = []
    for update in updates:
        if isinstance(update, v1.ToolCallProgress):
            entry = next((it for it in timeline if it[:2] == ["call", update.tool_call_id]), None)
            if entry is None:
                entry = ["call", update.tool_call_id, "", "pending"]
                timeline.append(entry)
            entry[2], entry[3] = update.title or entry[2], update.status or entry[3]
            continue
        key: list[Any] = [type(update), update.message_id]
        if update.message_id is None:
            entry = timeline[-1] if timeline and timeline[-1][0] is type(update) else None
        else:
            entry = next((it for it in timeline if it[:2] == key), None)
        if entry is None:
            entry = [*key, ""]
            timeline.append(entry)
        entry[2] = mended(entry[2], update.content.text)
    return timeline


@settings(deadline=None)  # machines are shared
@given(st.lists(chunks() | calls(), max_size=30), st.sets(st.integers(0, 30)))
def test_any_updates_fold_as_the_simple_fold_says_whenever_they_are_read(updates: list[Any], read_at: set[int]) -> None:
    state = SessionState()
    for place, update in enumerate(updates):
        state.add(update)
        if place in read_at:
            assert len(state.timeline) == len(state)
    seen = [
        [entry.speaker, entry.id, entry.text]
        if isinstance(entry, Message)
        else ["call", entry.id, entry.title, entry.status]
        for entry in state.timeline
    ]
    speakers = {v1.AgentMessageChunk: "agent", v1.AgentThoughtChunk: "thought", v1.UserMessageChunk: "user"}
    assert seen == [[speakers.get(it[0], it[0]), *it[1:]] for it in simply(updates)]
    assert state.between(0) == list(state.timeline)


@settings(deadline=None)
@given(st.text(alphabet=["a", "é", THUMB, "\u200d", "\U0001f680"], max_size=10), st.data())
def test_text_cut_anywhere_in_utf_16_is_whole_again(text: str, data: st.DataObject) -> None:
    units = [chr(int.from_bytes(pair, "little")) for pair in zip(*[iter(text.encode("utf-16-le"))] * 2, strict=True)]
    joined, streamed, half = JoinedText(), "", ""
    while units:
        size = data.draw(st.integers(1, len(units)))
        piece = (
            "".join(units[:size]).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if size else ""
        )
        units = units[size:]
        said, half = whole_part(half, piece)
        assert joined.add(piece) == said
        streamed += said
    assert joined.read() == text == streamed + half == streamed + joined.rest()


def test_a_message_id_that_comes_again_in_another_turn_is_another_message() -> None:
    state = SessionState()
    for question, answer in (("One?", "One."), ("Two?", "Two.")):
        state.add_prompt([v1.TextContent(question)])
        state.add(agent(answer, "the-only-one"))
        state.end_turn()
    assert [message.text for message in state.messages] == ["One?", "One.", "Two?", "Two."]


# The limit


LIMIT = 100_000


def kept_bytes(state: SessionState) -> int:
    """Bytes of text and the like that can be reached from a state."""
    messages = [it.content for it in state.session_messages.values()]
    lists = (state.timeline, state.notices, state.unknown, state.plans, state.subagents, messages)
    return sum(len(repr(it)) for it in lists)


def flood(kind: str, number: int) -> tuple[v1.SessionUpdate, int]:
    text = f"{number} ".ljust(1_000, "x")
    updates: dict[str, Callable[[], Any]] = {
        "one message": lambda: agent(text),
        "a message each": lambda: agent(text, str(number)),
        "a tool call each": lambda: call(str(number), text),
        "one tool call": lambda: progress("one", meta={str(number): text}),
        "a message between sessions each": lambda: v1.SessionMessage(
            v1.MessageId(str(number)), content=[v1.TextContent(text)]
        ),
        "a notice each": lambda: v1.Notice("warning", text),
        "an unknown update each": lambda: Unknown("hologram", {"sessionUpdate": "hologram", "text": text}),
    }
    return updates[kind](), 1_000


@pytest.mark.parametrize(
    "kind",
    [
        "one message",
        "a message each",
        "a tool call each",
        "one tool call",
        "a message between sessions each",
        "a notice each",
        "an unknown update each",
    ],
)
def test_an_agent_that_sends_updates_without_end_does_not_fill_the_memory(kind: str) -> None:
    state = SessionState(LIMIT)
    for number in range(1_000):
        state.add(*flood(kind, number))
        if number % 50 == 0:
            assert kept_bytes(state) < 2 * LIMIT
    assert kept_bytes(state) < 2 * LIMIT


def test_the_oldest_messages_are_forgotten_and_the_newest_stay() -> None:
    state = SessionState(LIMIT)
    for number in range(1_000):
        state.add(*flood("a message each", number))
    assert 0 < state.forgotten < 1_000
    assert state.snapshot().forgotten == state.forgotten
    assert len(state) == 1_000
    numbers = [int(message.text.split()[0]) for message in state.messages]
    assert numbers == list(range(state.forgotten, 1_000))
    assert [entry.text for entry in state.between(0) if isinstance(entry, Message)] == [
        it.text for it in state.messages
    ]


def test_what_comes_behind_forgotten_entries_is_folded_as_before() -> None:
    state = SessionState(LIMIT)
    state.add_prompt([v1.TextContent("Go on")])
    for number in range(1_000):
        state.add(*flood("a tool call each", number))
    state.add(progress("0", status="completed"), 10)
    state.add(progress("999", status="completed"), 10)
    assert state.tool_calls[v1.ToolCallId("999")].title.startswith("999 ")
    assert state.tool_calls[v1.ToolCallId("0")].title == "", "it is known no longer"
    state.cancel_unfinished()
    state.end_turn(refused=True)
    assert all(isinstance(it, ToolCallState) and it.refused and it.is_finished for it in state.timeline)
    assert state.timeline == tuple(state.between(0))


def test_a_tool_call_that_is_replaced_over_and_over_forgets_nothing_else() -> None:
    state = SessionState(LIMIT)
    state.add(agent("before"), 100)
    for number in range(1_000):
        text = f"{number} ".ljust(1_000, "x")
        state.add(progress("one", content=[v1.Content(v1.TextContent(text))]), 1_000)
    assert state.forgotten == 0
    assert said(state) == [("agent", "before")]


def test_without_a_limit_everything_is_kept() -> None:
    state = SessionState()
    for number in range(1_000):
        state.add(*flood("a message each", number))
    assert (len(state.messages), state.forgotten) == (1_000, 0)
