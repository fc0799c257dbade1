"""The ten most used flows in a real terminal, half of them in a small one, with the built-in agent."""

import sys

from tests.tui.real_terminal import LARGE, SMALL, needs_tmux
from tests.waiting import wait_until

pytestmark = needs_tmux


def started(terminal, size, *arguments):
    it = terminal(size, *arguments)
    it.sees("Accord demo", "enter send")
    return it


def asked_to_edit(it):
    """The agent reads a file, which is no question, and asks to change it."""
    it.send("/edit README.md")
    it.sees("? Allow this edit?", "+ And once more.")


@LARGE
def test_a_prompt_is_answered_and_the_chat_can_be_left(terminal, size):
    it = started(terminal, size)
    it.send("hello")
    it.sees("❯ hello", "I am Accord's built-in agent")
    it.press("C-q")
    wait_until(it.has_ended)


@LARGE
def test_leaving_with_a_draft_says_that_it_was_not_sent(terminal, size):
    it = started(terminal, size)
    it.write("half a thought")
    it.sees("half a thought")
    it.press("C-q")
    it.sees("Your draft was not sent")


@SMALL
def test_a_change_is_allowed_reviewed_and_undone(terminal, size):
    it = started(terminal, size)
    asked_to_edit(it)
    it.answer("y", "Allow this edit")
    it.sees("I wrote README.md.")
    assert "And once more." in (it.project / "README.md").read_text()
    it.press("C-d")
    it.sees("1 changed file", "part 1 of 1", "+ And once more.", "x undo part")
    it.press("x")
    it.sees("No change to review")
    assert (it.project / "README.md").read_text() == "# Hi\n"
    it.press("Escape")
    it.sees("Undone: README.md", "enter send")


@SMALL
def test_a_change_is_denied_and_the_user_says_what_to_do_instead(terminal, size):
    it = started(terminal, size)
    asked_to_edit(it)
    it.answer("r", "Allow this edit")
    it.sees("As you wish: I changed nothing.", "What should the agent do instead?")
    it.send("hello")
    it.sees("I am Accord's built-in agent")
    assert (it.project / "README.md").read_text() == "# Hi\n"


@LARGE
def test_a_command_is_allowed_and_its_output_and_exit_code_are_shown(terminal, size):
    it = started(terminal, size)
    it.send("/run sh -c 'echo $((6 * 7)) things; exit 3'")
    it.sees("y Allow", "○ echo $((6 * 7)) things; exit 3")
    it.answer("y", "")
    it.sees("42 things", "exit code 3", "It ended with 3.")


@SMALL
def test_a_file_is_mentioned_by_letters_of_its_name(terminal, size):
    it = started(terminal, size)
    (it.project / "notes.txt").write_text("one\ntwo\n")
    it.write("what is @rdm")
    it.sees("README.md")
    it.press("Tab")
    it.sees("what is @README.md")
    it.press("Enter")
    it.sees("[file: README.md, 5 characters]", "You sent me")


@LARGE
def test_a_command_of_the_agent_is_completed(terminal, size):
    it = started(terminal, size)
    it.write("/think")
    it.sees("Think aloud")
    it.press("BSpace", "BSpace")
    it.sees("Think aloud")
    it.press("Tab", "Enter")
    it.sees("❯ /think", "▸")


@SMALL
def test_an_option_and_the_mode_are_changed(terminal, size):
    it = started(terminal, size)
    it.sees("Ask")
    it.press("C-g")
    it.sees("Options", "type to filter", "Length of answers")
    it.write("short")
    it.press("Enter")
    it.no_longer_sees("type to filter")
    it.sees("Accord demo", "Ask")
    it.press("M-m")
    it.sees("Explain")
    it.send("/edit README.md")
    it.sees("I change nothing.")


@LARGE
def test_a_session_is_opened_again_after_a_restart(terminal, size, tmp_path):
    agent = ("--", sys.executable, "-m", "accord", "demo", "--store", str(tmp_path / "sessions"))
    it = started(terminal, size, *agent)
    it.send("/title Blue whales")
    it.sees("Blue whales")
    it.send("hello")
    it.sees("I am Accord's built-in agent")
    it.press("C-q")
    wait_until(it.has_ended)
    it = started(terminal, size, *agent)
    it.press("C-s")
    it.sees("Sessions", "Blue whales")
    it.write("whal")
    it.press("Enter")
    it.sees("❯ hello", "I am Accord's built-in agent", "2 Accord demo: Blue whales")


@LARGE
def test_a_turn_is_cancelled_and_a_queued_prompt_goes_back_to_the_editor(terminal, size):
    it = started(terminal, size)
    it.send("/slow 600")
    it.sees("working 0:0")
    it.send("hello")
    it.sees("1 queued")
    it.press("Escape")
    it.sees("Stopped.", "\n hello\n")
    assert "❯ hello" not in it.screen()
    it.press("Enter")
    it.sees("❯ hello", "I am Accord's built-in agent")


@SMALL
def test_a_session_is_forked_and_another_agent_is_started_beside_it(terminal, size):
    it = started(terminal, size)
    it.send("hello")
    it.sees("I am Accord's built-in agent")
    it.send("/fork ")
    it.sees("1 Accord demo", "2 Accord demo", "A copy of")
    it.press("C-a")
    it.sees("Start an agent", "demo")
    it.press("Enter")
    it.sees("3 Accord demo")
    it.press("M-1")
    it.sees("❯ hello", "I am Accord's built-in agent")
