"""Sessions, options, commands, completion."""

import json

import pytest

import accord
from accord import v1
from accord_tools.demo import demo_agent
from accord_tools.tui.connection import ConnectionOptions
from tests.tui.conftest import AgentChoice
from tests.waiting import eventually


def keeping():
    agent = accord.Agent("keeps", store=accord.MemoryStore())

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        if turn.text.startswith("name "):
            await turn.session.set_title(turn.text[5:])
        await turn.say(f"You said {turn.text}.")

    return agent


async def test_a_new_session_gets_a_tab_and_keys_go_between_them(chat):
    async with chat(keeping()) as it:
        await it.send("name First")
        await it.idle()
        await it.press("ctrl+n")
        await eventually(lambda: len(it.app.conversations) == 2 and it.front.session is not None)
        await it.send("name Second")
        await it.sees("1 keeps: First", "2 keeps: Second", "You said name Second.")
        await it.press("alt+1")
        await it.sees("You said name First.")
        await it.press("alt+right")
        await it.sees("You said name Second.")


async def test_a_session_without_a_title_is_named_by_what_was_asked_first(chat):
    agent = accord.Agent("plain")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("done")

    async with chat(agent) as it:
        await it.send("Mend @src/lanes.py, please")
        await it.idle()
        await it.press("ctrl+n")
        await it.sees("1 plain: Mend lanes.py, please", "2 plain: ")


async def test_each_session_has_a_draft_of_its_own(chat):
    async with chat(keeping()) as it:
        await it.type("one")
        await it.press("ctrl+n")
        await eventually(lambda: it.app.editor.text == "")
        await it.type("two")
        await it.press("alt+left")
        await eventually(lambda: it.app.editor.text == "one")
        await it.press("alt+left")
        await eventually(lambda: it.app.editor.text == "two")


async def test_a_session_of_the_agent_is_listed_and_opened_with_its_past(chat):
    async with chat(keeping()) as it:
        await it.send("name Old work")
        await it.idle()
        await it.press("ctrl+n")
        await eventually(lambda: len(it.app.conversations) == 2)
        await it.press("alt+1", "ctrl+w")
        await eventually(lambda: len(it.app.conversations) == 1)
        await it.press("ctrl+s")
        await it.sees("Sessions", "Old work")
        await it.type("old")
        await it.press("enter")
        await it.sees("You said name Old work.")
        assert it.front.title == "Old work"


async def test_a_session_can_be_forked_and_deleted(chat):
    async with chat(keeping()) as it:
        await it.send("name Work")
        await it.idle()
        await it.send("/fork ")
        await eventually(lambda: len(it.app.conversations) == 2 and it.front.session is not None)
        fork = it.front.session.id
        await it.send("/delete ")
        await it.sees("for good")
        await it.press("down", "enter")
        await eventually(lambda: len(it.app.conversations) == 1)
        known = [info.session_id async for info in it.front.connection.remote.sessions()]
        assert fork not in known
        assert it.front.session.id in known


async def test_an_option_is_chosen_from_a_list_by_a_part_of_its_name(chat):
    async with chat(demo_agent()) as it:
        await it.press("ctrl+g")
        await it.sees("Options")
        await it.type("short")
        await it.press("enter")
        await eventually(lambda: it.front.state.option("length").current_value != "full")


async def test_shift_tab_lets_the_agent_do_more_without_a_question(chat):
    async with chat(demo_agent()) as it:
        await it.sees("allow ask")
        await it.press("shift+tab")
        await it.sees("allow edit", "Without a question: reading and changing files in the session's folders")
        await it.press("shift+tab")
        await it.sees("allow auto", "everything, commands included")
        await it.press("shift+tab")
        await it.sees("allow ask")
        await it.send("/allow none")
        await it.sees("allow none")


async def test_a_key_sets_the_next_mode(chat):
    async with chat(demo_agent()) as it:
        before = it.front.state.mode
        await it.press("alt+m")
        await eventually(lambda: it.front.state.mode != before)
        name = next(mode.name for mode in it.front.state.modes if mode.id == it.front.state.mode)
        await it.sees(name)


async def test_a_mode_that_is_not_offered_is_an_error_that_names_those_that_are(chat):
    async with chat(demo_agent()) as it:
        await it.send("/accord:mode nonsense")
        await it.sees("mode 'nonsense': none fits")


async def test_a_command_is_completed_and_an_exact_name_is_sent_at_once(chat):
    async with chat(demo_agent()) as it:
        await eventually(lambda: it.front.state.commands)
        await it.type("/pla")
        await it.sees("/plan")
        await it.press("tab")
        assert it.app.editor.text == "/plan "
        await it.press("ctrl+c")
        await it.type("/plan")
        await it.press("enter")
        await it.sees("❯ /plan")


async def test_a_list_closes_when_an_argument_is_typed(chat):
    async with chat(demo_agent()) as it:
        await eventually(lambda: it.front.state.commands)
        await it.type("/think")
        await it.type(" some words")
        await it.press("enter")
        await it.sees("❯ /think some words")


async def test_a_file_is_found_by_letters_of_its_name_and_sent_with_the_prompt(chat, tmp_path):
    agent, got = accord.Agent("reads"), []
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "parser.py").write_text("x = 1\n")
    (tmp_path / "notes.md").write_text("n\n")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        got.extend(turn.prompt)

    async with chat(agent) as it:
        await eventually(lambda: any(len(paths) for paths in it.app._paths.values()))
        await it.type("look at @prs")
        await it.sees("src/parser.py")
        await it.press("tab", "enter")
        await eventually(lambda: len(got) == 2)
        assert got[0].text == "look at @src/parser.py "
        assert isinstance(got[1], v1.ResourceLink | v1.EmbeddedResource)


async def test_an_agents_command_comes_before_ours_of_the_same_name(chat):
    agent = accord.Agent("commands")

    @agent.command("usage", "The agent's own usage")
    async def usage(turn: accord.Turn, argument: str) -> None:
        await turn.say("mine")

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("prompted")

    async with chat(agent) as it:
        await eventually(lambda: it.front.state.commands)
        await it.send("/usage ")
        await it.sees("mine")
        await it.send("/accord:usage ")
        await it.sees("the agent reports none")


async def test_a_conversation_is_exported_in_three_formats_and_never_over_a_file(chat, tmp_path):
    async with chat(keeping()) as it:
        await it.send("hello <b>")
        await it.idle()
        for name in ("a.md", "a.html", "a.json"):
            await it.send(f"/export {name}")
            await eventually(lambda name=name: (tmp_path / name).exists())
        assert "You said hello <b>." in (tmp_path / "a.md").read_text()
        assert "hello &lt;b&gt;" in (tmp_path / "a.html").read_text()
        entries = json.loads((tmp_path / "a.json").read_text())["entries"]
        assert [entry["type"] for entry in entries] == ["message", "message"]
        await it.send("/export a.md")
        await it.sees("name another file")


async def test_the_keys_of_the_help_are_those_of_the_table(chat):
    async with chat(keeping(), size=(80, 60)) as it:
        await it.press("f1")
        await it.sees("Keys", "ctrl+s", "sessions of the agent")
        await it.press("escape")
        await it.sees_no("sessions of the agent")


async def test_the_wire_shows_the_latest_messages(chat):
    async with chat(keeping()) as it:
        await it.send("hello")
        await it.idle()
        await it.press("ctrl+x")
        await it.sees("session/prompt", "session/update")


async def test_a_message_on_the_wire_is_cut_until_it_is_opened(chat):
    async with chat(keeping()) as it:
        await it.press("ctrl+x")
        await it.sees("initialize")
        assert "clientInfo" not in it.screen()
        await it.press("enter")
        await it.sees("clientInfo")


async def test_an_agent_that_was_started_again_counts_its_sessions(chat):
    async with chat(keeping()) as it:
        await it.send("/restart ")
        await it.sees("Starting the agent again")
        await eventually(lambda: it.front.session is not None)
        await it.press("ctrl+n")
        await eventually(lambda: len(it.app.conversations) == 2 and it.front.session is not None)
        await it.send("/restart ")
        await it.sees("close the other sessions of this agent first")


async def test_leaving_a_chosen_block_goes_to_the_end(chat):
    async with chat(keeping()) as it:
        await it.send("\n".join(f"line {number}" for number in range(99)))
        await it.idle()
        it.transcript.choose(it.transcript._blocks[0])
        it.transcript.scroll_to(y=0, animate=False, immediate=True)
        await it.press("escape")
        await eventually(lambda: it.transcript.scroll_y == it.transcript.max_scroll_y > 0)
        assert it.app.focused is it.app.editor


async def test_an_agent_that_cannot_be_started_says_why_and_what_to_do(chat):
    missing = AgentChoice("gone", lambda _: ["no-such-program-here"], where="no-such-program-here")
    async with chat(missing, opens=False) as it:
        await it.sees("no-such-program-here", "/restart")


async def test_the_agent_to_start_is_chosen_from_a_list(tmp_path):
    from accord_tools.tui.chat_app import ChatApp
    from accord_tools.tui.chat_settings import ChatOptions
    from tests.tui.conftest import Chat

    agent = keeping()
    choices = [AgentChoice("first", lambda _: agent), AgentChoice("second", lambda _: agent, where="the second")]
    app = ChatApp(None, ChatOptions(tmp_path, agents=choices, keeps=False))
    async with app.run_test(size=(80, 24)) as pilot:
        it = Chat(app, pilot)
        await it.sees("Start an agent", "first", "second")
        await it.type("sec")
        await it.press("enter")
        await eventually(lambda: app.front is not None and app.front.session is not None)
        assert app.front.connection.choice.name == "second"


async def test_a_draft_is_there_again_in_the_next_chat(chat, tmp_path):
    async with chat(keeping(), keeps=True) as it:
        await it.type("unfinished")
    async with chat(keeping(), keeps=True) as it:
        assert it.app.editor.text == "unfinished"
        await it.press("ctrl+c")
    async with chat(keeping(), keeps=True) as it:
        assert it.app.editor.text == ""


async def test_a_login_is_asked_for_and_the_prompt_goes_on_after_it(chat):
    agent, known = accord.Agent("locked"), []

    @agent.login("token", "A token")
    async def log_in(login: accord.Login) -> None:
        known.append(True)

    @agent.on_login_check
    def is_known() -> bool:
        return bool(known)

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("welcome")

    async with chat(agent, opens=False, prompt="hello") as it:
        await it.sees("locked wants you to log in")
        await it.press("y")
        await it.sees("Log in to", "A token")
        await it.press("enter")
        await it.sees("welcome")


async def test_the_list_of_sessions_shows_first_and_last_words_also_in_a_later_chat(chat, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = accord.MemoryStore()

    def fresh():
        agent = accord.Agent("keeps", store=store)

        @agent.on_prompt
        async def reply(turn: accord.Turn) -> None:
            await turn.say(f"You said {turn.text}.")

        return agent

    async with chat(fresh(), keeps=True) as it:
        await it.send("count the whales")
        await it.idle()
        await it.send("and the seals")
        await it.idle()
        await it.press("ctrl+s")
        await it.sees("> count the whales", "You said and the seals.")
        await it.press("escape")
    async with chat(fresh(), keeps=True) as it:
        await it.press("ctrl+s")
        await it.sees("count the whales")
        await it.type("seals")
        await it.sees("> count the whales", "You said and the seals.")
        await it.press("enter")
        await it.sees("❯ and the seals")


async def test_a_choice_that_is_typed_and_taken_at_once_is_the_one_that_was_typed(chat):
    """The key that takes an entry must not meet the list of the letters before it."""
    async with chat(demo_agent()) as it:
        await it.press("ctrl+g")
        await it.sees("Options")
        it.app.screen.query_one("Input").value = "short"
        it.app.screen._choose(None)
        await eventually(lambda: it.front.state.option("length").current_value != "full")


def writing(**options):
    """An agent that writes each word of a prompt `NAME TEXT` as it is told, through the client or by itself."""
    agent = accord.Agent("writes", store=accord.MemoryStore(), **options)

    @agent.on_prompt
    async def write(turn: accord.Turn) -> None:
        name, _, text = turn.text.partition(" ")
        if text:
            async with turn.tool(f"Write {name}", kind="edit") as tool:
                await tool.diff(name, None, text)
                await turn.files.write(name, text)
        await turn.say(f"Done with {turn.text}.")

    return agent


def edits():
    """A connection in which changes need no question."""
    return ConnectionOptions(allow="edit")


async def test_a_conversation_goes_back_to_a_message_with_the_files_as_they_were(chat, tmp_path):
    (tmp_path / "a.txt").write_text("before")
    async with chat(writing(), connection=edits()) as it:
        for text in ("hello", "a.txt one", "a.txt two", "b.txt new"):
            await it.send(text)
            await it.sees(f"Done with {text}.")
            await it.idle()
        session = it.front.session.id
        await it.press("alt+r")
        await it.sees("Go back to before this message", "b.txt new", "1 file changed since", "2 files changed since")
        await it.press("down", "down", "enter")
        await it.sees("Go back with", "conversation and files", "a.txt, b.txt")
        await it.press("down", "enter")
        await it.sees("Went back", "As they were: a.txt, b.txt", "Done with hello.")
        await eventually(lambda: it.app.editor.text == "a.txt one")
        assert (tmp_path / "a.txt").read_text() == "before"
        assert not (tmp_path / "b.txt").exists()
        assert it.front.session.id != session
        assert len(it.app.conversations) == 1
        assert [message.text for message in it.front.state.messages] == ["hello", "Done with hello."]
        await it.press("enter")
        await it.sees("Done with a.txt one.")
        assert (tmp_path / "a.txt").read_text() == "one"
        await it.idle()
        await it.send("/rewind ")  # the copy has places of its own
        await it.sees("Go back to before this message", "hello", "a.txt one")


async def test_files_stay_if_only_the_conversation_goes_back_and_go_back_with_it_later(chat, tmp_path):
    async with chat(writing(), connection=edits()) as it:
        for text in ("hello", "a.txt one", "b.txt two"):
            await it.send(text)
            await it.sees(f"Done with {text}.")
            await it.idle()
        await it.press("alt+r")
        await it.sees("Go back to before")
        await it.press("enter")
        await it.sees("conversation only")
        await it.press("enter")
        await it.sees("Files stay as they are: b.txt")
        assert (tmp_path / "b.txt").read_text() == "two"
        await it.press("alt+r")
        await it.sees("Go back to before", "2 files changed since")
        await it.press("enter")
        await it.sees("Go back with", "a.txt, b.txt")
        await it.press("down", "enter")
        await it.sees("As they were: a.txt, b.txt")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("overwrites", [False, True])
async def test_a_file_that_somebody_else_has_changed_is_overwritten_only_after_a_question(chat, tmp_path, overwrites):
    async with chat(writing(), connection=edits()) as it:
        await it.send("a.txt one")
        await it.sees("Done with a.txt one.")
        await it.idle()
        (tmp_path / "a.txt").write_text("by the user")
        await it.press("alt+r")
        await it.sees("Go back to before")
        await it.press("enter")
        await it.sees("Go back with")
        await it.press("down", "enter")
        await it.sees("Somebody else has changed 1 file since. Overwrite?", "a.txt")
        await it.press(*(["down"] if overwrites else []), "enter")
        await it.sees("Went back", "As they were: a.txt" if overwrites else "Left, as somebody else has changed them")
        assert (tmp_path / "a.txt").exists() is not overwrites
        assert it.front.state.messages == []


@pytest.mark.parametrize("knows", [True, False])
async def test_what_an_agent_wrote_by_itself_goes_back_if_the_agent_can_do_it(chat, tmp_path, knows):
    agent = writing()
    if not knows:

        @agent.on_request("_accord/rewind_files")
        async def refuse(params):
            raise accord.RequestError.method_not_found("_accord/rewind_files")

    async with chat(agent, connection=ConnectionOptions(versions=(2,))) as it:
        for text in ("hello", "a.txt one"):
            await it.send(text)
            await it.sees(f"Done with {text}.")
            await it.idle()
        await it.press("alt+r")
        await it.sees("Go back to before", "1 file changed since")
        await it.press("enter")
        await it.sees("Go back with", "a.txt")
        await it.press("down", "enter")
        await it.sees("As they were: a.txt" if knows else "Left, as the agent wrote them itself")
        assert (tmp_path / "a.txt").exists() is not knows


async def test_an_agent_without_cursors_is_said_to_need_them(chat):
    agent = accord.Agent("counts", state=dict)  # its state cannot be cut, so it offers no cursors

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        await turn.say("Well.")

    async with chat(agent) as it:
        await it.send("/rewind ")
        await it.sees("there is no message to go back to yet")
        await it.send("hello")
        await it.sees("Well.")
        await it.idle()
        await it.send("/rewind ")
        await it.sees("it announces no session cursors")
