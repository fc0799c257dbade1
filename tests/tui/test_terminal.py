"""The chat in a real terminal: tmux, at two sizes, with the built-in agent."""

import shutil
import subprocess
import sys
import uuid

import pytest

from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")

SIZES = [(80, 24), (200, 50)]


class Terminal:
    """A terminal in which `accord chat` runs."""

    def __init__(self, folder, size, *arguments, term="xterm-256color", **more):
        self._server = f"accord-{uuid.uuid4().hex}"
        self._size = size
        project, state = folder / "project", folder / "state"
        project.mkdir(exist_ok=True)
        (project / "README.md").write_text("# Hi\n")
        self.project = project
        variables = [f"TERM={term}", f"XDG_STATE_HOME={state}", f"XDG_CONFIG_HOME={folder / 'config'}"]
        variables += [f"{name}={value}" for name, value in more.items()]
        command = ["env", *variables, sys.executable, "-m", "accord", "chat", *arguments]
        width, height = size
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "chat", "-x", str(width), "-y", str(height), *command)
        self.tmux("set-option", "-g", "remain-on-exit", "on")

    def tmux(self, *arguments):
        done = subprocess.run(
            ["tmux", "-u", "-L", self._server, *arguments],
            capture_output=True,
            check=True,
            text=True,
            cwd=self.project,
        )
        return done.stdout

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "chat")

    def sees(self, *texts):
        try:
            wait_until(lambda: all(text in self.screen() for text in texts))
        except AssertionError:
            raise AssertionError(f"{texts} are not on the screen:\n{self.screen()}") from None
        assert all(len(line) <= self._size[0] for line in self.screen().splitlines())

    def press(self, *keys):
        self.tmux("send-keys", "-t", "chat", *keys)

    def send(self, text):
        self.tmux("send-keys", "-t", "chat", "-l", text)
        self.press("Enter")

    def has_ended(self):
        return self.tmux("display-message", "-p", "-t", "chat", "#{pane_dead}").strip() == "1"

    def close(self):
        self.tmux("kill-server")


@pytest.fixture
def terminal(tmp_path):
    started = []

    def start(size, *arguments, **options):
        started.append(Terminal(tmp_path, size, *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.mark.parametrize("size", SIZES)
def test_a_prompt_is_answered_and_the_chat_can_be_left(terminal, size):
    it = terminal(size)
    it.sees("Accord demo", "enter send")
    it.send("hello")
    it.sees("❯ hello", "I am Accord's built-in agent")
    it.press("C-q")
    wait_until(it.has_ended)


@pytest.mark.parametrize("size", SIZES)
def test_a_change_is_asked_about_and_written(terminal, size):
    it = terminal(size)
    it.sees("Accord demo")
    it.send("/edit README.md")
    it.sees("? read README.md", "y Allow")
    it.press("y")
    it.sees("? Edit README.md", "+ And once more.")
    wait_until(lambda: it.screen().count("? Edit README.md") == 2)  # above the prompt as well, where keys answer
    it.press("y")
    it.sees("I wrote README.md.")
    assert "And once more." in (it.project / "README.md").read_text()


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
    it.sees("? read README.md", "y Allow")
    it.press("y")
    it.sees("? Edit README.md", "+ And once more.", "y Allow")
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
        ("/permissions", "Nothing was allowed always"),
        ("/mcp", "start the chat with --mcp FILE"),
        ("/accord:usage", "Usage"),
        ("/about", "protocol: version"),
    ):
        it.send(f"{command} ")
        it.sees(said)
    it.press("C-x")
    it.sees("Messages on the wire", "initialize")


def test_a_terminal_that_is_dumb_gets_a_dialogue_line_by_line(terminal):
    it = terminal((80, 24), "--allow", "none", term="dumb")
    it.sees(">")
    it.send("hello")
    it.sees("I am Accord's built-in agent")
    it.send("/quit")
    wait_until(it.has_ended)
