"""What a session's updates of version 2 amount to."""

from __future__ import annotations

import base64
import json
import random

import pytest

from accord import v1
from accord.schema import codec, v2
from accord.schema.base import Unknown
from accord.session import Message, SessionState, ToolCallState

M = v2.MessageId
T = v2.ToolCallId
X = v2.TerminalId


def folded(*updates: v2.SessionUpdate) -> SessionState:
    state = SessionState()
    state.add_all(updates)
    return state


def read(**update) -> v2.SessionUpdate:
    """An update as it comes from the wire."""
    return codec.decode(json.dumps(update).encode(), v2.SessionUpdate)


def said(state: SessionState) -> list[tuple[str, str]]:
    return [(message.speaker, message.text) for message in state.messages]


def call(state: SessionState, call_id: str = "t") -> ToolCallState:
    return state.tool_calls[T(call_id)]


# Messages


def test_a_whole_message_replaces_its_chunks_and_later_chunks_append():
    state = folded(v2.AgentMessageChunk.of("A", M("m")), v2.AgentMessageChunk.of("B", M("m")))
    assert said(state) == [("agent", "AB")]
    state.add(v2.AgentMessage.of(M("m"), "C"))
    assert said(state) == [("agent", "C")]
    state.add(v2.AgentMessageChunk.of("D", M("m")))
    assert said(state) == [("agent", "CD")]


@pytest.mark.parametrize("cleared", [None, []])
def test_null_and_an_empty_list_clear_a_message_and_its_place_stays(cleared):
    state = folded(v2.AgentMessage.of(M("a"), "one"), v2.AgentMessage.of(M("b"), "two"))
    state.add(v2.AgentMessage(M("a"), cleared))
    assert said(state) == [("agent", ""), ("agent", "two")]
    state.add(v2.AgentMessageChunk.of("again", M("a")))
    assert said(state) == [("agent", "again"), ("agent", "two")]


def test_a_message_update_without_content_leaves_the_content():
    state = folded(v2.AgentMessage.of(M("m"), "kept"), v2.AgentMessage(M("m"), meta={"a": 1}))
    assert state.messages == [Message("agent", (v1.TextContent("kept"),), M("m"), meta={"a": 1})]


def test_user_messages_agent_messages_and_thoughts_have_ids_of_their_own():
    state = folded(
        v2.UserMessage.of(M("1"), "user"),
        v2.AgentMessage.of(M("1"), "agent"),
        v2.AgentThought.of(M("1"), "thought"),
        v2.AgentMessageChunk.of("!", M("1")),
    )
    assert said(state) == [("user", "user"), ("agent", "agent!"), ("thought", "thought")]


def test_an_id_stays_valid_across_prompts():
    state = folded(v2.AgentMessage.of(M("a"), "first"))
    state.add_prompt_copy([v1.TextContent("next")])
    state.add(v2.AgentMessageChunk.of(" more", M("a")))
    assert said(state) == [("agent", "first more"), ("user", "next")]


def test_interleaved_chunks_find_their_messages_in_the_order_of_the_first():
    state = folded(
        *(v2.AgentMessageChunk.of(text, M(name)) for name, text in [("a", "1"), ("b", "x"), ("a", "2"), ("b", "y")])
    )
    assert said(state) == [("agent", "12"), ("agent", "xy")]


def test_an_emoji_cut_in_two_by_chunks_is_joined_again():
    state = folded(v2.AgentMessageChunk.of("\ud83d", M("m")), v2.AgentMessageChunk.of("\udc4d", M("m")))
    assert said(state) == [("agent", "\U0001f44d")]


def test_readers_see_the_classes_of_version_1():
    picture, link = v2.ImageContent("aGk=", "image/png"), v2.ResourceLink("x", "file:///x")
    noted = v2.TextContent("t", v2.Annotations(["user", "_robot"], priority=0.5))
    [message] = folded(v2.AgentMessage.of(M("m"), "a", picture, link, noted)).messages
    assert message.content[:3] == (
        v1.TextContent("a"),
        v1.ImageContent("aGk=", "image/png"),
        v1.ResourceLink("x", "file:///x"),
    )
    assert isinstance(message.content[3], v1.TextContent)
    assert message.content[3].annotations == v1.Annotations(["user", "_robot"], priority=0.5)
    assert message.text == "at"


def test_a_link_keeps_its_icons():
    link = v2.ResourceLink("x", "file:///x", icons=[v2.Icon("https://e.com/i.png")])
    [message] = folded(v2.AgentMessage.of(M("m"), link)).messages
    [block] = message.content
    assert isinstance(block, v1.ResourceLink)
    assert codec.convert(codec.plain(block), v2.ContentBlock) == link


def test_content_that_nobody_knows_is_kept():
    hologram = {"type": "_hologram", "depth": 3}
    state = folded(read(sessionUpdate="agent_message", messageId="m", content=[hologram]))
    assert state.messages[0].content == (Unknown("_hologram", hologram),)


# The user's prompt


def test_the_echo_of_a_prompt_takes_the_place_of_its_copy():
    state = SessionState()
    state.add_prompt_copy([v1.TextContent("Hi there")])
    state.add(v2.UserMessage.of(M("u"), "Hi, there"))
    state.add(v2.AgentMessage.of(M("a"), "Hello"))
    assert said(state) == [("user", "Hi, there"), ("agent", "Hello")]
    assert state.messages[0].id == "u"


def test_an_echo_in_chunks_takes_the_place_of_the_copy():
    state = SessionState()
    place = state.add_prompt_copy([v1.TextContent("Hi there")])
    state.name_prompt(place, M("u"))
    state.add(v2.UserMessageChunk.of("Hi ", M("u")))
    state.add(v2.UserMessageChunk.of("there", M("u")))
    assert said(state) == [("user", "Hi there")]


def test_the_id_in_the_answer_decides_which_copy_an_echo_replaces():
    state = SessionState()
    state.add_prompt_copy([v1.TextContent("first")])
    second = state.add_prompt_copy([v1.TextContent("second")])
    state.name_prompt(second, M("two"))
    state.add(v2.UserMessage.of(M("two"), "SECOND"))
    state.add(v2.UserMessage.of(M("one"), "FIRST"))
    assert said(state) == [("user", "FIRST"), ("user", "SECOND")]
    assert [message.id for message in state.messages] == ["one", "two"]


def test_an_answer_after_the_echo_changes_nothing():
    state = SessionState()
    place = state.add_prompt_copy([v1.TextContent("Hi")])
    state.add(v2.UserMessage.of(M("u"), "Hi"))
    state.name_prompt(place, M("u"))
    state.add(v2.UserMessage.of(M("other"), "Ho"))
    assert said(state) == [("user", "Hi"), ("user", "Ho")]


def test_a_copy_that_the_agent_never_echoes_stays():
    state = SessionState()
    place = state.add_prompt_copy([v1.TextContent("Hi")])
    state.name_prompt(place, M("u"))
    state.add(v2.AgentMessage.of(M("a"), "Hello"))
    assert said(state) == [("user", "Hi"), ("agent", "Hello")]


def test_a_prompt_that_is_not_inserted_is_marked_and_the_next_echo_is_of_another():
    state = SessionState()
    place = state.add_prompt_copy([v1.TextContent("withdrawn")])
    state.drop_prompt(place)
    state.add(v2.UserMessage.of(M("u"), "sent"))
    assert [(message.text, message.refused) for message in state.messages] == [("withdrawn", True), ("sent", False)]


# Replacement


def test_observers_learn_of_a_message_that_was_replaced_and_not_of_one_that_grew():
    state, seen = SessionState(), []
    stop = state.on_replacement(lambda before, after: seen.append((before.text, after.text)))
    state.add(v2.AgentMessageChunk.of("Hel", M("m")))
    state.add(v2.AgentMessageChunk.of("lo", M("m")))
    state.add(v2.AgentMessage.of(M("m"), "Hello"))
    assert seen == []
    state.add(v2.AgentMessage.of(M("m"), "Bye"))
    state.add(v2.AgentMessage(M("m"), None))
    state.add(v2.AgentMessage.of(M("m"), "new"))
    assert seen == [("Hello", "Bye"), ("Bye", "")]
    state.clear()
    state.add(v2.AgentMessage.of(M("m"), "a"))
    state.add(v2.AgentMessage.of(M("m"), "b"))
    assert seen[2:] == [("a", "b")]
    stop()
    state.add(v2.AgentMessage.of(M("m"), "c"))
    assert len(seen) == 3


# Tool calls


def test_a_tool_call_begins_with_defaults_and_null_brings_them_back():
    state = folded(v2.ToolCallProgress(T("t")))
    assert call(state) == ToolCallState(T("t"))
    item, place = v2.Content.of("x"), v2.ToolCallLocation("/a", 3)
    can = v2.ToolCallCapabilities(v2.ToolCallCancelCapabilities())
    state.add(v2.ToolCallProgress(T("t"), "Run", "execute", "paused", [item], [place], {"a": 1}, 2, "sh", can))
    assert call(state) == ToolCallState(
        T("t"),
        "Run",
        "execute",
        "paused",
        [v1.Content.of("x")],
        [v1.ToolCallLocation("/a", 3)],
        {"a": 1},
        2,
        "sh",
        capabilities=can,
    )
    assert call(state).can_cancel
    state.add(v2.ToolCallProgress(T("t"), None, None, None, None, None, None, None, None, None))
    assert call(state) == ToolCallState(T("t"))
    assert not call(state).can_cancel


def test_chunks_append_to_the_content_of_a_tool_call_and_a_value_from_before_does_not_change():
    state = folded(v2.ToolCallContentChunk(T("t"), v2.Content.of("a")))
    before = call(state)
    state.add(v2.ToolCallContentChunk(T("t"), v2.Content.of("b")))
    state.add(v2.ToolCallProgress(T("t"), status="completed"))
    state.add(v2.ToolCallContentChunk(T("t"), v2.Content.of("c")))
    assert call(state).text == "a\nb\nc"
    assert before.text == "a"
    assert state.timeline == (call(state),)
    assert state.between(0) == [call(state)]


def test_a_diff_stays_as_it_came_because_a_patch_rarely_has_the_whole_texts():
    diff = v2.Diff([v2.DiffMove("/a", "/b")])
    state = folded(v2.ToolCallProgress(T("t"), content=[diff]))
    assert call(state).content == [diff]


def test_keys_of_meta_are_patched_one_by_one():
    state = folded(
        v2.ToolCallProgress(T("t"), meta={"a": {"x": 1}, "b": 2}),
        v2.ToolCallProgress(T("t"), meta={"a": {"y": 1}, "b": None, "c": 3}),
        v2.ToolCallProgress(T("t"), meta={}),
    )
    assert call(state).meta == {"a": {"y": 1}, "c": 3}
    state.add(v2.ToolCallProgress(T("t"), meta=None))
    assert call(state).meta is None


def test_a_cancelled_turn_leaves_background_tool_calls_alone():
    state = folded(
        v2.ToolCallProgress(T("front"), status="in_progress"),
        v2.ToolCallProgress(T("back"), status="in_progress"),
        v2.SessionStateUpdate("running", background=[v2.BackgroundToolCall(T("back"))]),
    )
    state.cancel_unfinished()
    assert (call(state, "front").status, call(state, "back").status) == ("cancelled", "in_progress")


# Terminals


def test_a_terminal_is_patched_and_its_snapshot_replaces_all_output():
    state = folded(
        v2.TerminalUpdate(X("x"), "make", "/w", size=v2.TerminalSize(80, 24)),
        v2.TerminalOutputChunk.of(X("x"), b"one\n"),
        v2.TerminalOutputChunk.of(X("x"), b"two\n"),
    )
    terminal = state.terminals[X("x")]
    assert (terminal.command, terminal.cwd, terminal.output) == ("make", "/w", b"one\ntwo\n")
    assert terminal.exit_status is None
    state.add(v2.TerminalUpdate(X("x"), output=v2.TerminalOutput.of(b"snap"), exit_status=v2.TerminalExitStatus(-1)))
    assert (terminal.output, terminal.exit_status) == (b"snap", v2.TerminalExitStatus(-1))
    state.add(v2.TerminalUpdate(X("x"), None, output=None, exit_status=None))
    assert (terminal.command, terminal.output, terminal.exit_status) == (None, b"", None)


def test_text_of_a_terminal_survives_cuts_inside_characters():
    text = "né 日本 \U0001f44d\r\n" * 20
    output, dice = text.encode(), random.Random(7)
    cuts = sorted(dice.sample(range(1, len(output)), 60))
    state = SessionState()
    for start, end in zip([0, *cuts], [*cuts, len(output)], strict=True):
        state.add(v2.TerminalOutputChunk.of(X("x"), output[start:end]))
        assert "\ufffd" not in state.terminals[X("x")].text
        assert text.startswith(state.terminals[X("x")].text)
    assert state.terminals[X("x")].text == text


def test_a_character_that_the_command_never_finished_is_shown_when_the_command_has_ended():
    state = folded(v2.TerminalOutputChunk.of(X("x"), "né".encode()[:-1]))
    assert state.terminals[X("x")].text == "n"
    state.add(v2.TerminalUpdate(X("x"), exit_status=v2.TerminalExitStatus(1)))
    assert state.terminals[X("x")].text == "n\ufffd"


def test_output_that_is_not_base64_is_kept_as_it_came():
    chunk = {"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": "%%%"}
    state = folded(v2.TerminalOutputChunk.of(X("x"), b"a"), read(**chunk), v2.TerminalOutputChunk.of(X("x"), b"b"))
    assert state.terminals[X("x")].output == b"ab"
    assert state.unknown == [Unknown("terminal_output_chunk", chunk)]


def test_a_terminal_and_a_tool_call_may_have_the_same_id():
    state = folded(
        v2.TerminalUpdate(X("1"), "make"), v2.ToolCallProgress(T("1"), "Build", content=[v2.Terminal(X("1"))])
    )
    assert call(state, "1").content == [v1.Terminal(X("1"))]
    assert state.terminals[X("1")].command == "make"


def test_the_limit_keeps_the_newest_output_of_a_terminal():
    state = SessionState(limit=100_000)
    data = base64.b64encode(b"x" * 999 + b"\n").decode()
    for _ in range(500):
        state.add(v2.TerminalOutputChunk(X("x"), data), len(data))
    terminal = state.terminals[X("x")]
    assert 1_000 <= len(terminal.output) < 100_000
    assert terminal.forgotten + len(terminal.output) == 500_000
    assert terminal.text == terminal.output.decode()


# The session


def test_the_state_of_the_session_is_a_snapshot():
    work = [v2.BackgroundToolCall(T("t"))]
    state = folded(v2.SessionStateUpdate("running", background=work))
    assert (state.activity, state.background, state.last_end) == ("running", work, None)
    end = v2.SessionStateUpdate("idle", "end_turn", v1.Usage(8, 3, 5))
    state.add(end)
    assert (state.activity, state.background, state.last_end) == ("idle", None, end)
    state.add(v2.SessionStateUpdate("idle", background=[]))
    assert (state.activity, state.background, state.last_end) == ("idle", [], end)
    assert (state.snapshot().activity, state.snapshot().background) == ("idle", ())


def test_a_state_that_nobody_knows_is_not_idle():
    asleep = {"sessionUpdate": "state_update", "state": "_asleep", "background": []}
    state = folded(v2.SessionStateUpdate("idle"), read(**asleep))
    assert (state.activity, state.background) == ("_asleep", [])
    assert state.unknown == [Unknown("state_update", asleep)]


def test_plans_go_by_their_ids_and_the_latest_with_steps_is_the_plan():
    state = folded(
        v2.PlanUpdate.of(v2.PlanId("a"), "one"),
        v2.PlanUpdate.of(v2.PlanId("b"), v2.PlanEntry.of("two", status="cancelled")),
        v2.PlanUpdate(v2.PlanMarkdown(v2.PlanId("c"), "# Three")),
    )
    assert list(state.plans) == ["a", "b", "c"]
    assert [(step.content, step.status) for step in state.plan] == [("two", "cancelled")]
    state.add(v2.PlanRemoved(v2.PlanId("b")))
    assert (state.plan_id, [step.content for step in state.plan]) == ("a", ["one"])
    state.add(v2.PlanUpdate.of(v2.PlanId("a")))
    assert state.plan == []
    state.add(v2.PlanRemoved(v2.PlanId("a")))
    assert (state.plan_id, state.plan, list(state.plans)) == (None, [], ["c"])


def test_the_cost_of_the_usage_stays_until_it_is_cleared():
    cost = v1.Cost(1.5, "EUR")
    state = folded(v2.UsageUpdate(1, 10, cost), v2.UsageUpdate(2, 10))
    assert state.usage == v1.UsageUpdate(2, 10, cost)
    state.add(v2.UsageUpdate(3, 10, None))
    assert state.usage == v1.UsageUpdate(3, 10)


def test_title_and_meta_of_the_session_are_patches():
    state = folded(
        v2.SessionInfoUpdate("Title", "2026-11-22T08:00:00Z", meta={"a": 1}), v2.SessionInfoUpdate(meta={"b": 2})
    )
    assert (state.title, state.updated_at, state.meta) == ("Title", "2026-11-22T08:00:00Z", {"a": 1, "b": 2})
    state.add(v2.SessionInfoUpdate(None, meta=None))
    assert (state.title, state.updated_at, state.meta) == (None, "2026-11-22T08:00:00Z", None)


def test_options_and_commands_are_those_of_version_1_and_the_mode_is_an_option():
    choices = [v2.SessionConfigSelectOption(v2.SessionConfigValueId(it), it.title()) for it in ("ask", "code")]
    option = v2.SessionConfigSelect(
        v2.SessionConfigId("m"), "Mode", v2.SessionConfigValueId("code"), choices, category="mode"
    )
    state = folded(
        v2.ConfigOptionUpdate([option]),
        v2.AvailableCommandsUpdate([v2.Command("review", "Review", v2.TextCommandInput("what"))]),
    )
    assert (state.mode, [mode.id for mode in state.modes]) == ("code", ["ask", "code"])
    assert state.option("m") is not None
    assert state.commands == [v1.AvailableCommand("review", "Review", v1.UnstructuredCommandInput("what"))]


def test_subagents_keep_what_runs_in_their_background():
    work = [v2.BackgroundTerminal(X("x"))]
    state = folded(
        v2.SubagentUpdate(v2.SessionId("child"), "Search", state=v2.RunningStateUpdate(background=work)),
        v2.SubagentUpdate(v2.SessionId("child"), meta={"a": 1}),
    )
    child = state.subagents[v2.SessionId("child")]
    assert (child.title, child.state, child.background, child.meta) == (
        "Search",
        v2.RunningStateUpdate(background=work),
        work,
        {"a": 1},
    )


def test_updates_of_version_1_from_a_confused_agent_are_folded():
    state = folded(
        read(sessionUpdate="tool_call", toolCallId="t", title="Look"),
        read(sessionUpdate="plan", entries=[{"content": "x", "priority": "low", "status": "pending"}]),
        read(sessionUpdate="current_mode_update", currentModeId="code"),
    )
    assert (call(state).title, [step.content for step in state.plan], state.mode) == ("Look", ["x"], "code")
    assert state.unknown == []


def test_an_update_of_a_kind_that_nobody_knows_is_kept():
    unknown = {"sessionUpdate": "weather_update", "n": 1}
    assert folded(read(**unknown)).unknown == [Unknown("weather_update", unknown)]


def test_every_update_of_version_2_has_a_fold():
    from accord.schema.type_tree import Tagged, node_of

    union = node_of(v2.SessionUpdate)
    assert isinstance(union, Tagged)
    for _, cls in union.variants:
        state = SessionState()
        state.add(_SMALLEST[cls])
        assert state.unknown == [], cls


_SMALLEST = {
    type(update): update
    for update in (
        v2.ReplayComplete(),
        v2.CursorUpdate(v2.CursorId("1"), v2.UserMessageAnchor(M("1"), "after")),
        v2.PromptSuggestionsUpdate([v2.PromptSuggestion.of("Go on")]),
        v2.UserMessageChunk.of("a", M("1")),
        v2.UserMessage(M("1")),
        v2.AgentMessageChunk.of("a", M("1")),
        v2.AgentMessage(M("1")),
        v2.AgentThoughtChunk.of("a", M("1")),
        v2.AgentThought(M("1")),
        v2.SessionStateUpdate("idle"),
        v2.ToolCallProgress(T("1")),
        v2.ToolCallContentChunk(T("1"), v2.Content.of("a")),
        v2.TerminalUpdate(X("1")),
        v2.TerminalOutputChunk.of(X("1"), b"a"),
        v2.PlanUpdate.of(v2.PlanId("1")),
        v2.PlanRemoved(v2.PlanId("1")),
        v2.AvailableCommandsUpdate([]),
        v2.ConfigOptionUpdate([]),
        v2.SessionInfoUpdate(),
        v2.UsageUpdate(1, 2),
        v2.Notice("info", "a"),
        v2.CompactionUpdate(v2.CompactionId("1"), "completed"),
        v2.CompactionSummaryChunk(v2.CompactionId("1"), v2.TextContent("a")),
        v2.SubagentUpdate(v2.SessionId("1")),
        v2.SessionMessage(M("1")),
        v2.SessionMessageChunk(M("1"), v2.TextContent("a")),
    )
}
