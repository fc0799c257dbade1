"""Questions of agents: permission, forms, links."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

import msgspec
import pytest

import accord
from accord.tui.connection import ConnectionOptions
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
        await it.sees("? Edit the file", "y Allow", "buy milk", "buy bread")
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
        await it.press("tab", "y")
        await it.sees("on I go")
        assert answers == [True]


async def test_a_text_that_is_typed_at_once_goes_into_the_editor_as_a_whole(chat, answers):
    async with chat(editing(answers)) as it:
        await it.send("go")
        await it.sees("y Allow")
        await it.type("/run")
        await eventually(lambda: it.app.editor.text == "/run")
        assert answers == []


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


async def test_what_is_allowed_on_the_command_line_is_not_asked(chat, answers):
    async with chat(editing(answers), connection=ConnectionOptions(allow="all")) as it:
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
        await it.sees("write notes.txt", "- old", "+ new")
        await eventually(lambda: it.app.bar.has_focus)
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
        await it.sees("? Edit the file", "y Allow")
        await eventually(lambda: it.app.bar.has_focus)
        question = it.app.bar.question
        question.choose(question.options[0][1])  # the bar is still in front: nothing has been drawn since
        await it.type("read")
        await eventually(lambda: it.app.editor.text == "read")
