"""Sending prompts and reading answers."""

import asyncio
import sys

import accord
from accord import v1
from accord.mistakes import MOST_SHOWN
from accord.transports import CommandTarget
from accord_tools.tui.connection import AgentChoice
from tests.waiting import eventually


def echo():
    agent = accord.Agent("echo", title="Echo")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say(f"You said **{turn.text}**.")

    return agent


async def test_a_prompt_and_its_answer_are_on_the_screen(chat):
    async with chat(echo()) as it:
        await it.type("hello you")
        await it.press("enter")
        await it.sees("❯ hello you", "You said hello you.")
        assert it.app.editor.text == ""


async def test_the_line_above_names_the_agent_the_folder_and_the_title(chat, tmp_path):
    agent = echo()

    @agent.on_session
    async def name(session: accord.Session) -> None:
        await session.set_title("Fix the parser")

    async with chat(agent, size=(100, 24)) as it:
        await it.sees("Echo", tmp_path.name[:20], "Fix the parser")


async def test_a_long_answer_is_followed_to_its_end(chat):
    agent = accord.Agent("long")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        for number in range(200):
            await turn.say(f"line {number}\n\n")

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("line 199")
        assert "line 0\n" not in it.screen()


async def test_the_mouse_selects_text_of_a_scrolled_answer(chat):
    agent = accord.Agent("long")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("".join(f"line {number}\n\n" for number in range(200)))

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("line 199")
        await it.idle()
        top = it.transcript.region.y
        rows = it.screen().splitlines()
        first = next(y for y, row in enumerate(rows) if "line 197" in row)
        await it.pilot.mouse_down(offset=(1, first))
        await it.pilot.hover(offset=(8, first + 2))
        await it.pilot.mouse_up(offset=(8, first + 2))
        assert first > top
        assert it.app.screen.get_selected_text() == "line 197\n\n line 198"


async def test_a_reader_who_scrolled_up_stays_where_they_are_while_more_comes(chat):
    agent = accord.Agent("long")
    more = asyncio.Event()

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        for number in range(100):
            await turn.say(f"line {number}\n\n")
        await more.wait()
        for number in range(100, 200):
            await turn.say(f"line {number}\n\n")

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("line 99")
        it.transcript.scroll_to(y=20, animate=False, immediate=True)
        await it.pilot.pause()
        before = it.reading()
        more.set()
        await it.idle()
        assert it.reading() == before
        await it.press("ctrl+end")
        await it.sees("line 199")


async def test_escape_stops_the_agent(chat):
    agent = accord.Agent("slow")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("working")
        await asyncio.Event().wait()

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("working 0:0")
        await it.press("escape")
        await it.sees("Stopped.")
        assert it.front.status == "idle"


async def test_escape_puts_the_queued_prompts_back_into_the_editor_in_their_order(chat):
    agent, prompts = accord.Agent("slow"), []

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        prompts.append(turn.text)
        await asyncio.Event().wait()

    async with chat(agent) as it:
        await it.send("first")
        await eventually(lambda: prompts == ["first"])
        await it.send("second")
        await it.send("third")
        await it.type("fourth")
        await it.sees("2 queued")
        await it.press("escape")
        await it.sees("Stopped.")
        await eventually(lambda: it.app.editor.text == "second\n\nthird\n\nfourth")
        assert it.front.status == "idle"
        assert prompts == ["first"]


async def test_a_prompt_that_is_sent_while_the_agent_works_waits_and_can_be_taken_back(chat):
    agent = accord.Agent("slow")
    go_on, prompts = asyncio.Event(), []

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        prompts.append(turn.text)
        await go_on.wait()

    async with chat(agent) as it:
        await it.send("first")
        await eventually(lambda: prompts == ["first"])
        await it.send("second")
        await it.send("third")
        await it.sees("2 queued")
        await it.press("ctrl+u")
        assert it.app.editor.text == "third"
        go_on.set()
        await eventually(lambda: prompts == ["first", "second"])


async def test_a_prompt_that_is_typed_before_the_agent_is_ready_is_sent_when_it_is(chat):
    agent, ready, prompts = accord.Agent("late"), asyncio.Event(), []

    @agent.on_session
    async def wait(session: accord.Session) -> None:
        await ready.wait()

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        prompts.append(turn.text)

    async with chat(agent, opens=False) as it:
        await it.send("early")
        await it.sees("1 queued")
        ready.set()
        await eventually(lambda: prompts == ["early"])


async def test_a_key_that_needs_a_session_says_that_it_is_not_open_yet(chat):
    agent, ready = accord.Agent("late"), asyncio.Event()

    @agent.on_session
    async def wait(session: accord.Session) -> None:
        await ready.wait()

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("here")

    async with chat(agent, opens=False) as it:
        await it.press("ctrl+g")
        await it.sees("the session is not open yet")
        ready.set()
        await eventually(lambda: it.front.session is not None)
        await it.press("alt+m")
        await it.sees("the agent offers no modes")


async def test_the_up_key_brings_earlier_prompts_back(chat):
    async with chat(echo()) as it:
        await it.send("one")
        await it.send("two")
        await it.idle()
        await it.type("unsent")
        await it.press("up")
        assert it.app.editor.text == "two"
        await it.press("up")
        assert it.app.editor.text == "one"
        await it.press("down", "down")
        assert it.app.editor.text == "unsent"


async def test_an_error_of_the_agent_shows_its_code_its_details_and_keeps_what_waited(chat):
    agent, failing = accord.Agent("fails"), asyncio.Event()

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await failing.wait()
        raise accord.RequestError(-32603, "Internal error", {"details": "the quota is used up"})

    async with chat(agent) as it:
        await it.send("go")
        await it.send("and then")
        await it.sees("1 queued")
        failing.set()
        await it.sees("Internal error (-32603)", "the quota is used up")
        await eventually(lambda: it.front.draft == "and then")


async def test_thoughts_are_folded_to_a_line_and_open_with_a_key(chat):
    agent = accord.Agent("thinks")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.think("first idea\nsecond idea")
        await turn.say("done")

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("second idea", "done")
        assert "first idea" not in it.screen()
        await it.press("ctrl+t")
        await it.sees("first idea", "second idea")


async def test_a_plan_is_one_line_and_opens_with_a_key(chat):
    agent, done = accord.Agent("plans"), asyncio.Event()

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        plan = await turn.plan("Read the code", "Write the tests")
        async with plan.step("Read the code"):
            await done.wait()

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("Plan 0/2 Read the code")
        assert "Write the tests" not in it.screen()
        await it.press("ctrl+l")
        await it.sees("▸ Read the code", "○ Write the tests")
        done.set()
        await it.idle()


async def test_another_size_of_the_terminal_wraps_everything_again(chat):
    agent, done = accord.Agent("works"), asyncio.Event()

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("many words that fill more than one row of a narrow terminal, and then some")
        await done.wait()

    async with chat(agent, size=(100, 30)) as it:
        await it.send("go")
        await it.sees("many words that fill more than one row of a narrow terminal, and then some")
        await it.pilot.resize_terminal(50, 15)
        await it.sees("many words that fill more than one row", "narrow terminal, and then some", "enter send")
        assert max(map(len, it.screen().splitlines())) <= 50
        assert len(it.screen().splitlines()) == 15
        done.set()


async def test_a_message_is_sent_into_the_running_turn_of_an_agent_that_takes_it(chat):
    agent, steered, going_on = accord.Agent("steers"), [], asyncio.Event()

    @agent.on(v1.InitializeRequest)
    def answer(request: v1.InitializeRequest) -> v1.InitializeResponse:
        return v1.InitializeResponse(1, meta={"steering": {"supported": True}})

    @agent.on_request("_session/steering")
    async def steer(params: dict) -> dict:
        steered.append(params["prompt"][0]["text"])
        return {"outcome": "injected"}

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await going_on.wait()

    async with chat(agent) as it:
        await it.send("go")
        await it.sees("working 0:0")
        await it.send("/btw the other file")
        await it.sees("Sent into the running turn", "the other file")
        assert steered == ["the other file"]
        going_on.set()
        await it.idle()


async def test_a_mistyped_command_is_not_sent_and_stays_in_the_editor(chat):
    async with chat(echo(), size=(100, 24)) as it:
        await it.send("/mdoel fast")
        await it.sees("/mdoel is not a command; did you mean /model?")
        assert it.app.editor.text == "/mdoel fast"
        await it.send(" /mdoel fast")
        await it.sees("You said")
        await it.send("/etc/hosts is wrong")
        await it.sees("You said /etc/hosts is wrong.")


async def test_a_command_that_only_the_agent_has_goes_to_it(chat):
    agent = echo()

    @agent.command("mdoel", "The agent's own")
    async def own(turn: accord.Turn) -> None:
        await turn.say("mine")

    async with chat(agent) as it:
        await eventually(lambda: it.front.state.commands)
        await it.send("/mdoel ")
        await it.sees("mine")


async def test_a_forgotten_await_of_the_agent_s_author_is_named_the_first_few_times(chat, tmp_path):
    program = tmp_path / "mine.py"
    program.write_text(
        "import accord\nagent = accord.Agent('mine')\n@agent.on_prompt\nasync def reply(turn):\n"
        + "    turn.say('lost')\n" * (MOST_SHOWN + 1)
        + "    await turn.say('heard')\nagent.run()\n"
    )
    command = [sys.executable, str(program)]
    choice = AgentChoice("mine", lambda said: CommandTarget(command, on_stderr=said))
    async with chat(choice, size=(400, 40)) as it:
        await it.send("go")
        await it.sees("the agent: ", "mine.py, line 5:", "turn.say('lost') is not awaited", "heard")
        await eventually(lambda: len(it.front.connection.stderr) == MOST_SHOWN + 1)
        it.transcript.flush()
        assert it.transcript.text.count("the agent: ") == MOST_SHOWN


def suggesting():
    agent = accord.Agent("suggests", accepts=["image"])

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        kinds = " ".join(type(block).__name__ for block in turn.prompt)
        if turn.text == "hello":
            picture = v1.ImageContent.from_bytes(b"x", "image/png")
            await turn.session.suggest("Run the tests", ["What is this?", picture], picture)
        await turn.say(f"{turn.text}: {kinds}.")

    return agent


async def test_tab_takes_one_suggested_prompt_after_the_other(chat):
    async with chat(suggesting()) as it:
        await it.send("hello")
        await it.sees("tab Run the tests · What is this?")
        await it.idle()
        await it.press("tab")
        assert it.app.editor.text == "Run the tests"
        await it.press("tab")
        assert it.app.editor.text == "What is this?"
        await it.press("tab", "tab")
        assert it.app.editor.text == "What is this?"
        await it.press("enter")
        await it.sees("What is this?: TextContent ImageContent.")
        await it.sees_no("tab Run the tests")  # they were for the prompt before


async def test_suggestions_go_when_something_is_typed_and_come_back_for_the_right_arrow(chat):
    async with chat(suggesting()) as it:
        await it.send("hello")
        await it.sees("tab Run the tests")
        await it.idle()
        await it.type("x")
        await it.sees_no("tab Run the tests")
        await it.press("backspace")
        await it.sees("tab Run the tests")
        await it.press("right")
        assert it.app.editor.text == "Run the tests"


async def test_a_suggested_text_cannot_act_on_the_terminal(chat):
    agent = accord.Agent("hostile")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.session.suggest("\x1b]0;owned\x07run")
        await turn.say("Well.")

    async with chat(agent) as it:
        await it.send("hello")
        await it.sees("Well.", "owned")
        await it.idle()
        await it.press("tab")
        assert "owned" in it.app.editor.text
        assert not set(it.app.editor.text) & {"\x1b", "\x07"}
