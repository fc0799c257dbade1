"""The bot in a chat at a terminal: conversations are sessions, it asks in the chat, and a restart keeps all."""

import shlex
import sqlite3
import sys

import pytest

from tests.examples.programs import program
from tests.waiting import eventually


@pytest.fixture
def bot(tmp_path):
    """`async with bot() as running`: the bot with the built-in agent; both keep their files in the test's folder."""
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)

    def start(*, pace=0):
        demo = [sys.executable, "-m", "accord", "demo", "--pace", str(pace), "--store", str(tmp_path / "demo.sqlite3")]
        options = ["--pause", "0", "--folder", project, "--store", tmp_path / "bot.sqlite3"]
        return program("chat_bot/bot.py", *options, "--", *demo)

    start.project = project
    start.store = tmp_path / "bot.sqlite3"
    return start


def states(store):
    """The states of the messages in the bot's queue; empty before it has one."""
    with sqlite3.connect(store) as file:
        if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'messages'").fetchone():
            return []
        return [state for (state,) in file.execute("SELECT state FROM messages ORDER BY number")]


async def test_each_conversation_is_a_session_of_its_own(bot):
    async with bot() as running:
        running.write("my name is Ada")
        await running.printed(r"\[main\] Pleased to meet you, Ada\. .*lives\.")
        running.write("#garden who am I?")
        await running.printed(r"\[garden\] You have not told me")
        running.write("#main who am I?")
        await running.printed(r"\[main\] You are Ada\.")
        assert await running.end() == 0


async def test_an_answer_grows_in_one_message(bot):
    async with bot(pace=0.001) as running:
        running.write("my name is Ada")
        await running.printed(r"session lives\.")
        assert await running.end() == 0
        assert running.out.count("[main]") == 1


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_the_agent_s_question_is_asked_and_answered_in_the_chat(bot, answer):
    async with bot() as running:
        running.write("/edit")
        await running.printed(r"May I\? Edit accord-demo\.md\n(?s:.*)\+You allowed it\.\nAnswer yes or no\.")
        assert not (bot.project / "accord-demo.md").exists()
        running.write(answer)
        await running.printed(r"I wrote `accord-demo\.md`" if answer == "yes" else r"I changed nothing")
        assert (bot.project / "accord-demo.md").exists() == (answer == "yes")


async def test_a_question_is_refused_when_the_chat_ends(bot):
    async with bot() as running:
        running.write("/edit")
        await running.printed("Answer yes or no")
        assert await running.end() == 0
        assert "I changed nothing" in running.out


async def test_stop_stops_the_answer_that_is_under_way(bot):
    async with bot(pace=0.03) as running:
        running.write("/slow 3600")
        await running.printed("This takes 3,600 steps")
        running.write("stop")
        await running.printed(r"I stopped at step \d+, and nothing is left of it\.\s+\(cancelled\)")
        assert await running.end() == 0


async def test_a_restart_keeps_the_sessions(bot):
    async with bot() as running:
        running.write("my name is Ada")
        await running.printed("Pleased to meet you")
        assert await running.end() == 0
    async with bot() as running:
        running.write("who am I?")
        await running.printed(r"\[main\] You are Ada\.")


async def test_a_killed_bot_tells_what_it_was_interrupted_at_and_answers_what_waited(bot):
    async with bot(pace=0.03) as running:
        running.write("/slow 3600")
        await running.printed("This takes 3,600 steps")
        running.write("hello")
        await eventually(lambda: states(bot.store) == ["begun", "waits"])
        running.process.kill()
        await running.ended()
    async with bot() as running:
        await running.printed(r"\[main\] \(I was interrupted at this; ask again: /slow 3600\)")
        await running.printed(r"\[main\] Hello")
        assert await running.end() == 0
    assert states(bot.store) == ["done", "done"]


async def test_an_agent_s_text_cannot_act_on_the_terminal(bot):
    async with bot() as running:
        running.write("\x1b]0;title\x07")
        await running.printed(shlex.quote("␛]0;title␇")[1:-1])
        assert "\x1b" not in running.out
