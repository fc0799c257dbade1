"""What stands where: the sidebar, lists over the conversation, find, and the first screen."""

import asyncio

from textual.widgets import Input

import accord
from accord import v1
from accord_tools.demo import demo_agent
from accord_tools.tui.connection import AgentChoice, ConnectionOptions
from accord_tools.tui.transcript import FindBar
from tests.waiting import eventually


def planning(until=None):
    agent = accord.Agent("plans")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.plan(v1.PlanEntry("Look around", "medium", "completed"), "Change it")
        await turn.usage(50, 200, 0.25)
        if until is not None:
            await turn.files.write("new.txt", "one\ntwo\n")
            await until.wait()
        await turn.say("\n\n".join(["apple pie", *["nothing"] * 60, "pear", "Apple juice"]))

    return agent


async def test_the_sidebar_has_the_plan_the_files_the_usage_and_the_queue(chat):
    until = asyncio.Event()
    options = ConnectionOptions(allow="auto")
    async with chat(planning(until), size=(120, 40), connection=options) as it:
        await it.send("go")
        await it.send("and then this")
        await it.sees(
            "Plan  1 of 2", "Change it", "Files changed  1", "new.txt", "+2", "context 25% full", "1 and then this"
        )
        await it.press("f3")
        await it.sees_no("Files changed")
        await it.sees("Plan 1/2")
        until.set()
        await it.idle()


async def test_a_screen_of_119_columns_has_no_sidebar_and_a_wide_one_centres_the_text(chat):
    async with chat(planning(), size=(119, 30)) as it:
        await it.send("go")
        await it.idle()
        assert not it.app.query_one("#side").display
    async with chat(planning(), size=(220, 50)) as it:
        await it.send("go")
        await it.idle()
        assert it.app.query_one("#side").display
        assert it.transcript.region.width == 102
        assert it.transcript.region.x == (220 - it.app.query_one("#side").region.width - 102) // 2


async def test_a_list_stands_over_the_conversation(chat):
    async with chat(planning(), size=(100, 40)) as it:
        await it.send("go")
        await it.sees("Apple juice")
        await it.send("/theme")
        await it.sees("Theme", "gruvbox", "Apple juice")


async def test_a_theme_is_shown_while_it_is_marked_and_esc_brings_the_one_before_back(chat):
    async with chat(planning(), theme="nord") as it:
        await it.send("/theme")
        await it.sees("type to filter")
        await it.type("grub".replace("b", "v"))
        await eventually(lambda: it.app.theme == "gruvbox")
        await it.press("escape")
        await eventually(lambda: it.app.theme == "nord")


async def test_find_marks_and_counts_with_each_letter(chat):
    async with chat(planning()) as it:
        await it.send("go")
        await it.idle()
        await it.press("ctrl+f")
        await it.type("app")
        await it.sees("2 of 2", "Apple juice")
        await it.press("up")
        await it.sees("1 of 2", "apple pie")
        await it.type("ly")
        await it.sees("no hit")
        await it.press("escape")
        await eventually(lambda: it.app.focused is it.app.editor)
        assert not it.app.query_one(FindBar).display
        assert it.app.query_one(FindBar).query_one(Input).value == "apply"


async def test_an_empty_conversation_says_what_can_be_done_and_that_the_demo_is_one(chat):
    demo = AgentChoice("demo", lambda _: planning(), where="shows every feature", is_demo=True)
    async with chat(demo) as it:
        await it.sees("This is the demo", "no model answers", "ctrl+a", "a command of the shell")
        await it.send("go")
        await it.sees_no("This is the demo")
    async with chat(planning()) as it:
        await it.sees("a command of the shell")
        assert "demo" not in it.screen()


async def test_the_header_names_its_values(chat):
    async with chat(demo_agent()) as it:
        await it.sees("mode Ask", "allow ask")


async def test_no_row_of_the_help_is_cut(chat):
    async with chat(planning()) as it:
        await it.press("f1")
        await it.sees("what it does")
        assert "…" not in it.screen()


def spending(amounts, go_on):
    agent = accord.Agent("spends")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        for amount in amounts:
            await turn.usage(1, 2, amount)
        await go_on.wait()
        await turn.say("went on")

    return agent


async def test_the_chat_asks_before_a_limit_is_reached_and_goes_on_with_a_yes(chat):
    go_on = asyncio.Event()
    options = ConnectionOptions(budget=accord.Budget(max_cost=1))
    async with chat(spending([0.9], go_on), connection=options) as it:
        await it.send("go")
        await it.sees("The turn has used 0.9 of 1 USD", "go on, as much again")
        await it.press("y")
        go_on.set()
        await it.sees("went on")


async def test_a_turn_past_its_budget_is_stopped_with_a_sentence(chat):
    options = ConnectionOptions(budget=accord.Budget(max_cost=1))
    async with chat(spending([1.5], asyncio.Event()), connection=options) as it:
        await it.send("go")
        await it.sees("Stopped by max_cost = 1", "/settings changes the limit")


async def test_a_command_that_comes_while_one_is_typed_joins_the_list(chat):
    agent, typed, added = accord.Agent("ships"), asyncio.Event(), asyncio.Event()

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await typed.wait()
        await turn.session.commands.offer("deploy", "Ship it", lambda: None)
        await added.wait()

    async with chat(agent) as it:
        await it.send("go")
        await it.type("/dep")
        typed.set()
        await it.sees("/deploy", "Ship it")
        added.set()
        await it.idle()


async def test_the_columns_of_a_table_are_aligned_as_it_says(chat):
    agent = accord.Agent("tables")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("| a | price | mid |\n|---|---:|:---:|\n| x | 1 | y |\n| long | 12345 | yyyyy |\n")

    async with chat(agent) as it:
        await it.send("go")
        await it.idle()
        await it.sees("a     price   mid", "x         1    y", "long  12345  yyyyy")


async def test_an_error_in_somebodys_extension_does_not_end_the_chat(chat, monkeypatch):
    class Broken(accord.Extension[dict], name="example.com/broken"):
        label = "Broken"

        @classmethod
        def notice(cls, update):  # noqa: ARG003 - as it is defined
            raise ZeroDivisionError("no notice")

        @property
        def summary(self) -> str:
            raise ZeroDivisionError("no summary")

    agent = accord.Agent("talks")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("still here", meta={"example.com/broken": {}})
        turn.answer_meta["example.com/broken"] = {}

    monkeypatch.setattr("accord_tools.tui.connection.installed_extensions", lambda: [Broken])
    async with chat(agent) as it:
        for _ in range(2):
            await it.send("go")
            await it.sees("still here", "Broken failed: ZeroDivisionError: no summary")
            await it.idle()
        assert it.screen().count("still here") == 2
