"""The chat in a real terminal: tmux, at two sizes, with the built-in agent."""

import pytest

from tests.tui.real_terminal import SIZES, needs_tmux
from tests.waiting import wait_until

pytestmark = needs_tmux


def test_a_large_text_can_be_pasted(terminal):
    it = terminal((80, 24))
    it.sees("Accord demo")
    text = "\n".join(f"line {number} of what is pasted" for number in range(5_000))
    (it.project / "paste").write_text(text)
    it.tmux("load-buffer", str(it.project / "paste"))
    it.tmux("paste-buffer", "-p", "-t", "chat")
    it.sees("line 4999")
    it.press("Enter")
    it.sees("❯ line 0 of what is pasted", "4,988 more lines", "working")


@pytest.mark.parametrize(("size", "term"), [((80, 24), "vt100"), ((200, 50), "xterm")])
def test_a_terminal_without_utf_8_and_true_colours_gets_plain_signs(terminal, size, term):
    it = terminal(size, term=term, LC_ALL="C", COLORTERM="")
    it.sees("Accord demo", "enter send")
    it.send("/edit README.md")
    it.sees("? Allow this edit?", "+ And once more.", "y Allow")
    assert it.screen().isascii()
    it.press("f1")
    it.sees("Keys", "esc closes")
    assert it.screen().isascii()


@pytest.mark.parametrize("size", SIZES)
def test_a_second_session_gets_a_tab_and_sessions_are_listed(terminal, size):
    it = terminal(size)
    it.sees("Accord demo")
    it.send("hello")
    it.sees("I am Accord's built-in agent")
    it.press("C-n")
    it.sees("1 Accord demo", "2 Accord demo")
    it.press("C-s")
    it.sees("Sessions", "type to filter")


@pytest.mark.parametrize("size", SIZES)
def test_the_reports_of_the_chat_fit_into_the_screen(terminal, size):
    it = terminal(size)
    it.sees("Accord demo")
    for command, said in (
        ("/mcp", "start the chat with --mcp FILE"),
        ("/accord:usage", "Usage"),
        ("/about", "protocol: version"),
    ):
        it.send(f"{command} ")
        it.sees(said)
    it.send("/permissions ")
    it.sees("Level ask")
    it.press("Escape")
    it.no_longer_sees("Level ask")
    it.press("C-x")
    it.sees("Messages on the wire", "initialize")


def test_a_terminal_that_is_dumb_gets_a_dialogue_line_by_line(terminal):
    it = terminal((80, 24), "--allow", "none", term="dumb")
    it.sees(">")
    it.send("hello")
    it.sees("I am Accord's built-in agent")
    it.send("/quit")
    wait_until(it.has_ended)
