"""Questions of agents: permission, forms, links."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import pytest
from textual import events

import accord
from accord_tools.tui.connection import ConnectionOptions
from tests.waiting import eventually


@pytest.fixture
def answers():
    return []


@dataclass
class Person:
    """What the form asks for."""

    name: Annotated[str, msgspec.Meta(title="Your name", min_length=3)]
    loud: bool = False


def editing(answers):
    agent = accord.Agent("edits")

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Edit the file", kind="edit") as tool:
            await tool.diff("notes.txt", "buy milk\n", "buy bread\n")
            answers.append(bool(await tool.ask()))
        await turn.say("on I go")

    return agent


@pytest.mark.parametrize(("key", "allowed"), [("y", True), ("n", False), ("enter", True)])
async def test_a_key_answers_a_question(chat, answers, key, allowed):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("… Allow this edit?", "Edit the file", "y Allow", "buy milk", "buy bread")
        await it.press(key)
        await it.sees("on I go")
        assert answers == [allowed]
        await it.sees_no("reject and say why")


async def test_words_that_are_being_typed_are_no_answer(chat, answers):
    agent, writing = accord.Agent("asks"), asyncio.Event()

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        await writing.wait()
        answers.append(bool(await turn.ask("Delete it")))
        await turn.say("on I go")

    async with chat(agent) as it:
        await it.send("go")
        await it.type("n")
        writing.set()
        await it.sees("press tab, or empty the editor, to answer")
        await it.type("yn")
        assert it.app.editor.text == "nyn"
        assert answers == []
        await it.press("tab")
        await it.press("y")
        await it.sees("on I go")
        assert answers == [True]


async def test_a_sentence_that_is_typed_as_the_question_appears_is_no_answer(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.type("yes please, always")
        assert it.app.editor.text == "yes please, always"
        assert answers == []


async def test_a_pause_within_a_sentence_answers_nothing_either(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.type("I say ")
        await it.quiet()
        await it.type("yes")
        assert it.app.editor.text == "I say yes"
        assert answers == []


async def test_a_text_that_begins_with_no_answer_goes_into_the_editor_as_a_whole(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.quiet()
        await it.type("/run")
        assert it.app.editor.text == "/run"
        assert answers == []


async def test_emptying_the_editor_gives_the_keys_back_to_the_question(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.press("x", "backspace")
        await it.press("n", "enter")
        await it.sees("on I go")
        assert answers == [False]
        assert not it.front.queue


async def test_a_prompt_sent_while_a_question_is_open_is_shown_to_wait_for_the_answer(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.send("no, keep the milk")
        await it.sees("1 queued until you have answered", "y Allow")
        await it.press("n")
        await it.sees("❯ no, keep the milk")
        assert answers[0] is False


async def test_pasted_text_is_no_answer_and_keeps_the_keys_in_the_editor(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.quiet()
        it.app.post_message(events.Paste("y"))
        await eventually(lambda: it.app.editor.text == "y")
        await it.press("y")
        assert it.app.editor.text == "yy"
        assert answers == []


async def test_tab_leaves_a_question_open_to_write_a_text_that_begins_like_an_answer(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.press("tab")
        await it.press("y")
        assert it.app.editor.text == "y"
        assert answers == []


async def test_tab_gives_the_editor_the_keys_also_from_elsewhere(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        it.app.set_focus(None)
        await it.press("tab")
        assert it.app.focused is it.app.editor


async def test_each_question_takes_keys_only_half_a_second_after_it_appeared(chat):
    agent, got = accord.Agent("asks"), []

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        got.append(bool(await turn.ask("Delete it")))
        got.append((await turn.elicit("Who are you?", Person)).action)
        got.append((await turn.elicit_url("Log in", "https://example.com/login")).action)

    async with chat(agent) as it:
        await it.send("go")
        for question in ("Delete it", "Who are you?", "Log in"):
            await it.sees(f"… {question}", " n ")
            await it.type("n")
            assert it.app.editor.text == "n"
            await it.press("backspace")
            await it.press("n")
        await eventually(lambda: got == [False, "decline", "decline"])


async def test_what_an_open_question_is_about_is_on_the_screen_once(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.quiet()
        await it.sees("? Allow this edit?")
        assert it.screen().count("Edit the file") == 1


COMMAND = "npm test -- --grep 'a b'"
CALLS = {
    "in the title": {"title": COMMAND, "raw_input": None},
    "in the title, quoted": {"title": f"`{COMMAND}`", "raw_input": {"command": COMMAND}},
    "in the title, cut": {"title": "Run npm test -- --gr…", "raw_input": {"command": COMMAND}},
    "in the input": {"title": "Run the tests", "raw_input": {"command": COMMAND}},
    "in words": {"title": "Run the tests", "raw_input": {"command": ["bash", "-lc", COMMAND]}},
    "in the content": {"title": "Run the tests", "raw_input": {"command": COMMAND}, "text": f"```sh\n{COMMAND}\n```"},
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_command_is_shown_once_as_a_person_would_type_it(chat, call, width):
    agent = accord.Agent("runs")

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        async with turn.tool(call["title"], kind="execute", raw_input=call["raw_input"]) as tool:
            if "text" in call:
                await tool.text(call["text"])
            await tool.ask()

    async with chat(agent, size=(width, 24)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.quiet()
        await it.sees("? Allow this command?", COMMAND)
        assert (it.screen().count("npm test"), it.screen().count("bash")) == (1, 0)
        await it.press("y")
        await it.idle()
        assert it.screen().count("npm test") == 1


async def test_a_title_that_says_more_than_the_command_is_shown_beside_it(chat):
    agent = accord.Agent("runs")

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        async with turn.tool("git push --force", kind="execute", raw_input={"command": "git"}) as tool:
            await tool.ask()

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("git push --force  $ git", "y Allow")


async def test_a_question_whose_tool_call_is_further_up_names_its_command(chat):
    agent = accord.Agent("runs")

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        async with turn.tool("npm test", kind="execute") as tool:
            await turn.say("first something else")
            await tool.ask()

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("y Allow", "$ npm test")


async def test_a_click_answers_a_question_once_it_takes_keys(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow", "n Reject")
        await eventually(lambda: it.app.bar.keys.is_painted)
        place = next(row for row in it.screen().splitlines()[::-1] if "n Reject" in row).index("n Reject") + 3
        await it.pilot.click(it.app.bar, offset=(place, 1))
        assert answers == []
        await it.quiet()
        await it.pilot.click(it.app.bar, offset=(1, 0))  # beside the answers
        assert answers == []
        await it.pilot.click(it.app.bar, offset=(place, 1))
        await it.sees("on I go")
        assert answers == [False]


async def test_rejecting_to_say_why_leaves_the_cursor_in_the_editor(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.press("r")
        await it.type("not so")
        await it.press("enter")
        await it.sees("❯ not so")
        assert answers[0] is False


async def test_stopping_the_agent_withdraws_its_question(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.press("escape")
        await it.sees("withdrawn", "Stopped.")
        assert not it.front.questions


async def test_several_questions_are_counted_and_answered_one_by_one(chat, answers):
    agent = accord.Agent("asks")

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        answers.extend(await asyncio.gather(*(turn.ask(f"Step {number}") for number in range(3))))

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("Step 0", "(and 2 more)")
        await it.press("y")
        await it.sees("(and 1 more)")
        await it.press("n")
        await it.sees_no("more)")
        await it.press("y")
        await it.idle()
        assert [bool(answer) for answer in answers] == [True, False, True]


async def test_a_form_is_filled_in_and_its_values_are_sent(chat):
    agent, got = accord.Agent("asks"), []

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        got.append((await turn.elicit("Who are you?", Person)).value)

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("fill in the form")
        await it.press("enter")
        await it.sees("Your name *", "Loud")
        await it.type("x")
        await it.press("ctrl+s")
        await it.sees("must have at least 3 characters")
        await it.type("yz")
        await it.press("ctrl+s")
        await eventually(lambda: got)
        assert got == [Person("xyz")]


@dataclass
class Order:
    """What another form asks for."""

    size: Literal["small", "large"]
    milk: bool = False


async def test_a_form_has_boxes_to_tick_and_of_one_choice_the_latest_counts(chat):
    agent, got = accord.Agent("asks"), []

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        got.append((await turn.elicit("What do you take?", Order)).value)

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("fill in the form")
        await it.press("enter")
        await it.sees("small", "large", "no")
        await it.press("space", "down", "space", "tab", "space")
        await it.sees("yes")
        await it.press("ctrl+s")
        await eventually(lambda: got)
        assert got == [Order("large", milk=True)]


async def test_what_is_allowed_on_the_command_line_is_not_asked(chat, answers):
    async with chat(editing(answers), connection=ConnectionOptions(allow="auto")) as it:
        await it.send("go")
        await it.sees("on I go")
        assert answers == [True]


async def test_a_use_of_a_file_is_asked_about_and_can_be_undone(chat, tmp_path):
    agent = accord.Agent("writes")
    (tmp_path / "notes.txt").write_text("old\n")

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        await turn.client.write_text_file(str(tmp_path / "notes.txt"), "new\n")
        await turn.say("written")

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("notes.txt", "- old", "+ new")
        await it.press("y")
        await it.sees("written")
        assert (tmp_path / "notes.txt").read_text() == "new\n"
        await it.press("ctrl+d")
        await it.sees("1 changed file", "- old", "+ new")
        await it.press("u")
        await it.sees("No change to review")
        await it.press("escape")
        await eventually(lambda: (tmp_path / "notes.txt").read_text() == "old\n")


async def test_a_text_that_is_typed_right_after_an_answer_is_for_the_editor(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("… Allow this edit?", "Edit the file", "y Allow")
        await it.quiet()
        it.app.bar.question.press("y")  # the bar is still there: nothing has been drawn since
        await it.type("read")
        await eventually(lambda: it.app.editor.text == "read")
