"""Commands of the shell that the user runs with `!`."""

import sys

import pytest

import accord
from accord_tools.tui.user_command import NeedsScreenError, UserCommand
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands are those of a POSIX shell")


def repeating():
    agent, got = accord.Agent("repeats"), []

    @agent.on_prompt
    async def reply(turn: accord.Turn) -> None:
        got.append("".join(block.text for block in turn.prompt))
        await turn.say("read it")

    return agent, got


async def test_a_command_shows_its_output_and_its_exit_code_and_no_agent_learns_of_it(chat):
    agent, got = repeating()
    async with chat(agent) as it:
        await it.send("!echo one; echo two; exit 3")
        await it.sees("! echo one; echo two; exit 3", "two", "exit code 3")
        assert got == []


async def test_the_next_command_runs_where_the_one_before_has_gone(tmp_path):
    (tmp_path / "inner").mkdir()
    first = UserCommand("cd inner; false", tmp_path)
    await first.run(lambda: None)
    assert (first.terminal.exit_status.exit_code, first.folder) == (1, tmp_path / "inner")
    second = UserCommand("pwd", first.folder)
    await second.run(lambda: None)
    assert second.terminal.text.strip() == str(tmp_path / "inner")


async def test_the_output_of_the_latest_command_goes_with_a_prompt_that_names_it(chat):
    agent, got = repeating()
    async with chat(agent) as it:
        await it.send("what is in @out")
        await it.sees("@out: there is no output yet")
        it.app.editor.set_text("")
        await it.send("!printf 'red\\nblue\\n'; exit 2")
        await it.sees("exit code 2")
        await it.send("what is in @out")
        await it.sees("read it")
        assert "red\nblue" in got[0]
        assert "exit code 2" in got[0]


async def test_a_running_command_is_stopped_with_esc(chat):
    async with chat(repeating()[0]) as it:
        await it.send("!echo begun; sleep 1000")
        await it.sees("begun", "esc stops it")
        await it.send("!echo another")
        await it.sees("still runs: esc stops it")
        await it.press("escape")
        await it.sees("ended by SIG")
        await eventually(lambda: not it.front.command.is_running)


async def test_a_program_for_the_whole_screen_is_refused_by_its_name_and_by_what_it_asks_the_terminal_for(tmp_path):
    with pytest.raises(NeedsScreenError, match="vim needs the whole screen: run it in a terminal beside the chat"):
        UserCommand("vim notes.txt", tmp_path)
    program = UserCommand("printf '\\033[?1049h'; sleep 1000", tmp_path)
    with pytest.raises(NeedsScreenError, match="printf needs the whole screen"):
        await program.run(lambda: None)
    assert not program.is_running
