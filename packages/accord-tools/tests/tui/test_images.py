"""Images in a real chat, over a pseudo-terminal that answers as terminals with graphics do."""

import os
import re
import select
import subprocess
import sys
import time

import pytest

from tests.pictures.test_image import png_of
from tests.waiting import DEADLINE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs pseudo-terminals")

AGENT = """
import accord
from accord import v1

agent = accord.Agent("draws")

@agent.on_prompt
async def draw(turn: accord.Turn) -> None:
    await turn.say(v1.ImageContent.from_file("picture.png"))
    await turn.say("here it is")

agent.run()
"""
ANSWERS = {
    "sixel": b"\x1b[6;18;9t\x1b[?62;4c",
    "kitty": b"\x1b_Gi=31;OK\x1b\\\x1bP>|kitty(0.42.1)\x1b\\\x1b[6;18;9t\x1b[?62c",
    "iterm2": b"\x1bP>|iTerm2 3.5.11\x1b\\\x1b[6;18;9t\x1b[?64c",
    "nothing": b"\x1b[?62c",
}


class Pty:
    """A terminal in which `accord chat` runs, and all that it has written."""

    def __init__(self, folder, answer):
        import fcntl
        import pty
        import struct
        import termios

        self.said = b""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        variables = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONUTF8": "1"}
        kept = {key: value for key, value in os.environ.items() if key not in ("TMUX", "STY", "NO_COLOR")}
        state = {name: str(folder / "own") for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME")}
        command = [sys.executable, "-m", "accord", "chat", "--", sys.executable, "agent.py"]
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=kept | variables | state
        )
        os.close(theirs)
        self._ours = ours
        self.until(b"\x1b[c")
        self.write(answer)

    def write(self, data):
        os.write(self._ours, data)

    def until(self, text):
        end = time.monotonic() + DEADLINE
        while text not in self.said:
            ready, _, _ = select.select([self._ours], [], [], end - time.monotonic())
            assert ready, self.said[-2_000:]
            self.said += os.read(self._ours, 65_536)

    def close(self):
        self._process.terminate()
        os.close(self._ours)
        self._process.wait()


@pytest.fixture
def terminal(tmp_path):
    (tmp_path / "picture.png").write_bytes(png_of(8, 2, [b"\xff\x00\x00" * 40] * 36, size=(40, 36)))
    (tmp_path / "agent.py").write_text(AGENT)
    started = []

    def start(answer):
        started.append(Pty(tmp_path, ANSWERS[answer]))
        it = started[-1]
        it.until(b"enter")
        it.write(b"go\r")
        it.until(b"here")
        return it

    yield start
    for one in started:
        one.close()


def test_a_terminal_with_sixel_gets_a_strip_of_the_image_for_each_row(terminal):
    it = terminal("sixel")
    it.until(b"\x1bP0;1q")
    strips = set(re.findall(rb'\x1b7\x1b\[\d+D\x1bP0;1q"1;1;45;18#0;2;100;0;0#0.*?\x1b\\\x1b8', it.said, re.DOTALL))
    assert len(strips) == 1  # a plain image: both rows are the same


def test_kitty_gets_the_image_once_and_placeholders_for_each_row(terminal):
    it = terminal("kitty")
    it.until("\U0010eeee\u030d\u0305".encode())
    assert it.said.count(b"a=T,f=100,q=2,U=1,i=") == 1
    assert it.said.count("\U0010eeee\u0305\u0305".encode()) >= 1


def test_iterm2_gets_each_row_as_a_file(terminal):
    it = terminal("iterm2")
    it.until(b"width=5;height=1;preserveAspectRatio=0;doNotMoveCursor=1:")


def test_another_terminal_gets_half_blocks(terminal):
    it = terminal("nothing")
    it.until("▀".encode())
    assert b"\x1bP0;1q" not in it.said
    assert b"]1337" not in it.said
