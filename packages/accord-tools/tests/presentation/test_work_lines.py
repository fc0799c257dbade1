"""How updates become lines for people, what a stream can show, and where a line is broken."""

from __future__ import annotations

import base64
import struct

import pytest

from accord import updates, v1
from accord.printable import columns
from accord.session.placeholders import placeholder
from accord_tools.cli.display import MOST_BYTES, drawn
from accord_tools.presentation.appearance import Appearance, appearance
from accord_tools.presentation.diffs import COMPARED, FileDiff
from accord_tools.presentation.styled_text import WrappedStream, rows_of, text_of
from accord_tools.presentation.work_lines import Work, line_of, usage_lines

PLAIN = Appearance(is_terminal=False)


def lines(*said: updates.Update, details: bool = False) -> list[str]:
    work = Work("/srv/project", details=details)
    shown = [line for update in said for line in work.lines(update)]
    return [("… " if line.is_passing else "") + text_of(line.first) + line.text for line in (*shown, *work.rest())]


def tool(call_id: str, **fields: object) -> updates.ToolCallProgress:
    return v1.ToolCall(v1.ToolCallId(call_id), **{"title": "Edit notes.md", **fields}).as_update()


def progress(call_id: str, **fields: object) -> updates.ToolCallProgress:
    return v1.ToolCallProgress(v1.ToolCallId(call_id), **fields).as_update()


def test_a_tool_call_passes_while_it_runs_and_is_one_line_with_its_change_when_it_is_done() -> None:
    change = v1.Diff("/srv/project/notes.md", "one\n2\nthree\n", "one\ntwo\n")
    assert lines(tool("t"), progress("t", content=[change]), progress("t", status="completed")) == [
        "… ▸ Edit notes.md",
        "✓ Edit notes.md  +2 -1",
    ]


def test_changes_of_other_files_are_named_and_counted() -> None:
    changes = [v1.Diff(f"/srv/project/{name}", "x\n") for name in ("a.py", "b.py")]
    shown = lines(tool("t", content=changes, status="completed"))
    assert shown == ["✓ Edit notes.md", "  a.py  new file  +1", "  b.py  new file  +1"]
    many = [v1.Diff(f"/srv/project/{number}", "x\n") for number in range(8)]
    assert lines(tool("t", content=many, status="completed"))[-1] == "  and 3 more files"


def test_a_cancelled_call_is_not_shown_as_failed() -> None:
    assert lines(tool("t", status="cancelled")) == ["⊘ Edit notes.md cancelled"]


def test_a_call_that_its_cancelled_turn_ended_is_cancelled_although_the_agent_can_only_say_failed() -> None:
    work = Work("/", is_cancelled={"one"}.__contains__)
    said = [v1.Content(v1.TextContent("stopped"))]
    shown = {
        name: [text_of(it.first) + it.text for it in work.lines(tool(name, status="failed", content=said))]
        for name in ("one", "two")
    }
    assert shown == {"one": ["⊘ Edit notes.md cancelled"], "two": ["✗ Edit notes.md", "  stopped"]}


def test_a_call_has_failed_if_its_command_has_whatever_the_agent_says() -> None:
    work = Work("/", failure_of={"one": "exit code 1"}.get)
    for status, terminal, shown in (
        ("completed", "one", "✗ Run tests failed, exit code 1"),
        ("failed", "one", "✗ Run tests failed, exit code 1"),
        ("cancelled", "one", "⊘ Run tests cancelled"),
        ("completed", "two", "✓ Run tests"),
    ):
        content = [v1.Terminal(v1.TerminalId(terminal))]
        call = tool(f"{status} {terminal}", title="Run tests", status=status, content=content)
        assert [line.text for line in work.lines(call)] == [shown]


def test_a_failed_call_shows_what_it_said_and_a_finished_one_only_with_details() -> None:
    said = [v1.Content(v1.TextContent("one\ntwo"))]
    assert lines(tool("t", status="failed", content=said)) == ["✗ Edit notes.md", "  one", "  two"]
    assert lines(tool("t", status="completed", content=said)) == ["✓ Edit notes.md"]
    assert lines(tool("t", status="completed", content=said), details=True) == ["✓ Edit notes.md", "  one", "  two"]


def test_updates_of_a_finished_call_are_not_shown_again() -> None:
    assert lines(tool("t", status="completed"), progress("t", title="Again", status="completed")) == ["✓ Edit notes.md"]


def test_a_call_that_never_ends_is_shown_at_the_end() -> None:
    assert lines(tool("t")) == ["… ▸ Edit notes.md", "⊘ Edit notes.md not finished"]


def test_a_plan_is_shown_once_and_then_each_step_when_it_is_done() -> None:
    def plan(*statuses: v1.PlanEntryStatus) -> updates.PlanUpdate:
        steps = [updates.PlanEntry.of(f"step {number}", status=it) for number, it in enumerate(statuses, 1)]
        return updates.PlanUpdate(updates.PlanItems(updates.MAIN_PLAN, steps))

    shown = lines(plan("pending", "pending"), plan("in_progress", "pending"), plan("completed", "in_progress"))
    assert shown == [
        "Plan",
        "  ○ step 1",
        "  ○ step 2",
        "… ▸ step 1",
        "✓ step 1  1 of 2",
        "… ▸ step 2",
    ]


def test_a_plan_with_other_steps_is_shown_as_a_whole_again() -> None:
    assert lines(v1.Plan.of("one").as_update(), v1.Plan.of("one", "two").as_update())[2:] == [
        "Plan",
        "  ○ one",
        "  ○ two",
    ]


def test_notices_and_modes_are_lines() -> None:
    shown = lines(v1.Notice("warning", "Careful", "It is hot"), v1.CurrentModeUpdate(v1.SessionModeId("code")))
    assert shown == ["• Careful: It is hot", "• mode: code"]


def test_no_text_of_an_agent_acts_on_the_terminal_or_makes_a_line_of_its_own() -> None:
    evil = "a\x1b[2J\nb\u202e\x9b31m"
    change = v1.Diff(f"/srv/{evil}", f"{evil}\n", f"old {evil}\n")
    updates: list[v1.SessionUpdate] = [
        tool("t", title=evil, status="failed", content=[change, v1.Content(v1.TextContent(evil))]),
        v1.Plan.of(evil).as_update(),
        v1.Notice("error", evil, evil),
        v1.CurrentModeUpdate(v1.SessionModeId(evil)),
        v1.CompactionUpdate(v1.CompactionId("c"), "failed", error=evil),
        v1.SubagentUpdate(v1.SessionId("s"), title=evil),
        v1.PlanUpdate(v1.PlanMarkdown(v1.PlanId("p"), evil)),
        v1.PlanUpdate(v1.PlanMarkdown(v1.PlanId("p"), "", evil)),
    ]
    shown = [lines(update, details=True) for update in updates]
    assert all(shown)
    text = "".join(line for some in shown for line in some)
    assert not set(text) & set("\x1b\x9b\n\u202e")
    assert "␛[2J" in text


def test_the_work_of_a_hostile_agent_takes_bounded_memory() -> None:
    work = Work("/")
    for number in range(5_000):
        for line in work.lines(tool(str(number), content=[v1.Content(v1.TextContent("x" * 2_000))])):
            assert line.is_passing
    assert len(list(work.rest())) == 100
    large = v1.Diff("/a", "x" * 4_000_000)
    assert [it.text for it in work.lines(tool("large", content=[large]))] == ["▸ Edit notes.md"]
    assert [it.text for it in work.lines(progress("large", status="completed"))] == ["✓ Edit notes.md"]


def test_a_long_change_is_counted_without_comparing_every_line() -> None:
    old = "".join(f"{number}\n" for number in range(COMPARED * 20))
    change = FileDiff(old, old.replace("77\n", "seventy-seven\n"))
    assert 1 < change.added == change.removed < COMPARED


@pytest.mark.parametrize(
    ("old", "new", "summary"),
    [
        ("a\nb\nc\nd\ne\nf\n", "a\nB\nc\nd\nE\nf\n", "  +2 -2"),
        ("x", "x", "  unchanged"),
        (None, "", "  new file"),
        (None, "x\n", "  new file  +1"),
        ("", "x\n", "  +1"),
    ],
)
def test_the_numbers_of_a_change_are_said_in_the_same_way_everywhere(old, new, summary) -> None:
    assert "".join(text for text, _ in FileDiff(old, new).summary) == summary


def test_a_newline_at_the_end_that_only_one_side_has_is_a_change() -> None:
    def shown(old: str, new: str) -> list[str]:
        return [f"{line.sign}{''.join(text for text, _ in line.spans)}" for line in FileDiff(old, new).lines]

    assert shown("a\nb", "a\nb\n") == [" a", "-b  (no newline at the end)", "+b"]
    assert shown("a\nb", "a\nc") == [" a", "-b", "+c"]


def test_what_a_command_has_printed_is_shown_as_a_terminal_shows_it() -> None:
    text = "```\n\x1b[32mPASSED\x1b[0m one\n10 %\r100 %\n\x1b]0;title\x07\n```"
    said = [v1.Content(v1.TextContent(text))]
    [_, *shown] = list(Work("/").lines(tool("t", status="failed", content=said)))
    assert [line.text for line in shown] == ["PASSED one", "100 %"]
    look = Appearance(is_terminal=True, colours=True, is_ascii=False)
    assert look.row(rows_of(shown[0], 80)[0]) == "  \x1b[32mPASSED\x1b[0m one"
    assert Appearance(is_terminal=False).row(rows_of(shown[0], 80)[0]) == "  PASSED one"


def test_a_terminal_without_utf_8_gets_signs_of_ascii() -> None:
    line = line_of(("✓ ", "good"), ("café → 3…", ""))
    assert Appearance(is_terminal=True, is_ascii=True).row(rows_of(line, 40)[0]) == "+ café > 3."


@pytest.mark.parametrize(
    ("style", "code"),
    [
        ("bold accent", "1;36"),
        ("added word", "32;1"),
        ("fg:bright_red", "91"),
        ("bg:12", "48;5;12"),
        ("fg:1,2,3", "38;2;1;2;3"),
    ],
)
def test_the_names_of_styles_become_codes_of_the_terminal(style, code) -> None:
    assert Appearance(is_terminal=True, colours=True).painted(style, "x") == f"\x1b[{code}mx\x1b[0m"


@pytest.mark.parametrize(
    ("amount", "words"), [(0.25, "0.25"), (0.000_075, "0.0001"), (3, "3"), (12_345.678, "12,345.7")]
)
def test_usage_is_one_line(amount, words) -> None:
    context = v1.UsageUpdate(1_000, 4_000, v1.Cost(amount, "USD"))
    [line] = usage_lines(None, context)
    assert line.text == f"context 25% full (1,000 of 4,000), {words} USD"
    assert list(usage_lines(None, None)) == []


# Colours, symbols and pictures


@pytest.mark.parametrize(
    ("environment", "is_terminal", "colours", "moves"),
    [
        ({"TERM": "xterm-256color"}, True, True, True),
        ({"TERM": "xterm-256color"}, False, False, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, True, False, True),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True, True, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False, True),
        ({"TERM": "dumb"}, True, False, False),
        ({}, True, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True, False),
        ({"FORCE_COLOR": "1"}, False, True, False),
        ({"TERM": "xterm", "FORCE_COLOR": "0"}, True, False, True),
    ],
)
def test_colours_follow_the_environment_and_nothing_moves_on_a_dumb_terminal(
    environment: dict[str, str], is_terminal: bool, colours: bool, moves: bool
) -> None:
    look = appearance(environment, "utf-8", is_terminal=is_terminal)
    assert (look.colours, look.moves) == (colours, moves)


def test_a_stream_that_is_not_unicode_gets_ascii() -> None:
    assert appearance({"TERM": "xterm"}, "iso-8859-1", is_terminal=True).is_ascii
    assert appearance({"TERM": "linux"}, "utf-8", is_terminal=True).is_ascii
    assert not appearance({"TERM": "xterm"}, "UTF-8", is_terminal=True).is_ascii


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm2"),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app", "TMUX": "/tmp/tmux"}, None),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "dumb", "KITTY_WINDOW_ID": "1"}, None),
    ],
)
def test_pictures_are_drawn_only_by_terminals_that_name_themselves(
    environment: dict[str, str], protocol: str | None
) -> None:
    assert appearance(environment, "utf-8", is_terminal=True).pictures == protocol
    assert appearance(environment, "utf-8", is_terminal=False).pictures is None


def png(width: int, height: int, size: int = 0) -> v1.ImageContent:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02\0\0\0"
    return v1.ImageContent.from_bytes(head + b"\0" * size, "image/png")


def test_a_picture_is_drawn_in_bounds_and_its_data_cannot_end_the_sequence() -> None:
    shown = drawn(png(64, 64, 10_000), "kitty", 80) or ""
    assert shown.startswith("\x1b_Ga=T,f=100,q=2,c=7,r=4,m=1;")
    assert shown.endswith("\x1b\\")
    payload = "".join(part.partition(";")[2] for part in shown.split("\x1b\\"))
    assert base64.b64decode(payload).startswith(b"\x89PNG")
    assert "width=80;height=4;" in (drawn(png(4_000, 400), "iterm2", 80) or "")
    assert "r=20" in (drawn(png(10, 4_000), "kitty", 80) or "")


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("file:///srv/project/a.txt#L3", "a.txt L3"),
        ("file:///srv/project", "file:///srv/project"),
        ("file:///srv/other/a.txt", "file:///srv/other/a.txt"),
        ("https://example.com/a.txt", "https://example.com/a.txt"),
    ],
)
def test_a_file_is_named_relative_to_the_folder_that_it_is_in(uri: str, shown: str) -> None:
    file = v1.EmbeddedResource(v1.TextResourceContents(uri=uri, text="one"))
    assert placeholder(file, "/srv/project").startswith(f"[file: {shown}, 3 ")


@pytest.mark.parametrize(
    "image",
    [
        png(0, 5),
        png(100_000, 5),
        png(5, 5, MOST_BYTES),
        v1.ImageContent("\x1b\\evil", "image/png"),
        v1.ImageContent.from_bytes(b"\xff\xd8\xff\xe0 a photograph", "image/jpeg"),
        v1.ImageContent("", "image/png"),
    ],
    ids=["empty", "wide", "large", "no base64", "no PNG", "no data"],
)
def test_what_cannot_be_drawn_has_a_placeholder(image: v1.ImageContent) -> None:
    assert drawn(image, "kitty", 80) is None
    assert placeholder(image).startswith("[image: image/")
    assert "\x1b" not in placeholder(image)


# Rows


def test_a_line_is_wrapped_between_words_and_keeps_its_colours() -> None:
    look = Appearance(is_terminal=True, colours=True)
    line = line_of(("✓ ", "good"), ("one two three four five six", ""))
    assert list(map(look.row, rows_of(line, 22))) == ["\x1b[32m✓ \x1b[0mone two three four", "  five six"]
    assert list(map(PLAIN.row, rows_of(line._replace(wrap="whole"), 22))) == ["✓ one two three four five six"]


def test_code_is_cut_at_the_width() -> None:
    line = line_of(("+" + "日本" * 20, "good"), wrap="crop").under((("    ", ""),))
    [row] = map(PLAIN.row, rows_of(line, 30))
    assert columns(row) <= 30
    assert row.startswith("    +日本")


def wrapped(text: str, width: int, size: int) -> str:
    wrapping = WrappedStream()
    chunks = [text[place : place + size] for place in range(0, len(text), size)]
    return "".join([*(wrapping.add(chunk, width) for chunk in chunks), wrapping.rest(width)])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_text_is_wrapped_alike_however_it_is_cut_into_chunks(size: int) -> None:
    text = (
        "- one two three four five six seven\n\nplain words that are longer than a row\n"
        "```\ncode stays as it is, whatever\n```\n    and so does this line of code\nend"
    )
    assert wrapped(text, 24, size).split("\n") == [
        "- one two three four",
        "  five six seven",
        "",
        "plain words that are",
        "longer than a row",
        "```",
        "code stays as it is, whatever",
        "```",
        "    and so does this line of code",
        "end",
    ]


def test_a_word_without_an_end_takes_bounded_memory_and_time() -> None:
    wrapping = WrappedStream()
    shown = "".join(wrapping.add("x" * 100, 80) for _ in range(5_000)) + wrapping.rest(80)
    assert shown.count("x") == 500_000


CHILD = v1.SessionId("s/c1")


def test_a_subagent_is_named_when_it_begins_and_when_it_has_ended() -> None:
    begun = v1.SubagentUpdate(CHILD, "Look for callers", state=v1.RunningStateUpdate())
    waits = v1.SubagentUpdate(CHILD, state=v1.RequiresActionStateUpdate())
    goes_on = v1.SubagentUpdate(CHILD, state=v1.RunningStateUpdate())
    ended = v1.SubagentUpdate(CHILD, state=v1.IdleStateUpdate("end_turn"))
    assert lines(begun, waits, goes_on, ended) == [
        "• subagent Look for callers",
        "… • subagent Look for callers: waits for you",
        "• subagent Look for callers: done",
    ]


def test_a_subagent_that_failed_or_was_cancelled_says_so() -> None:
    failed = v1.SubagentUpdate(
        CHILD, "Look", state=v1.IdleStateUpdate("error", None, v1.Error(-32603, "no \x1b[31mdisk"))
    )
    cancelled = v1.SubagentUpdate(CHILD, state=v1.IdleStateUpdate("cancelled"))
    first, second = lines(failed, cancelled)
    assert first.startswith("• subagent Look: failed: no ")
    assert "\x1b" not in first
    assert second == "• subagent Look: cancelled"


def test_a_plan_that_was_removed_is_gone() -> None:
    plan = v1.PlanItems(v1.PlanId("p"), [v1.PlanEntry.of("Read")])
    assert lines(v1.PlanUpdate(plan), v1.PlanRemoved(v1.PlanId("p")), v1.PlanRemoved(v1.PlanId("p"))) == [
        "Plan",
        "  ○ Read",
        "• a plan was removed",
    ]
