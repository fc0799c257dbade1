"""Completion: what the parser offers for the words so far, and that real shells show it."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import sys

import pyte
import pytest

from tests.posix import fcntl, termios
from tests.waiting import DEADLINE

READY = "ready>"


def offered(user, *words):
    return [line.partition("\t")[0] for line in user.said("__complete", *words).splitlines()]


def test_commands_and_their_commands_are_offered(user):
    assert offered(user, "se") == ["serve", "sessions"]
    assert offered(user, "--debug", "ru") == ["run"]
    assert offered(user, "agents", "")[:6] == ["list", "add", "remove", "default", "trust", "search"]
    assert offered(user, "help", "inf") == ["info"]


def test_options_are_offered_once_unless_they_may_be_repeated(user):
    assert offered(user, "run", "Hi", "--al") == ["--allow"]
    assert offered(user, "run", "--allow", "auto", "--al") == []
    assert offered(user, "run", "--header", "A: b", "--hea") == ["--header"]


def test_values_of_options_are_offered(user):
    user.set('[agents.mine]\ncommand = "mine"\n[agents.more]\ncommand = "more"\n')
    assert offered(user, "run", "--allow", "e") == ["edit"]
    assert offered(user, "run", "Hi", "-a", "m") == ["mine", "more"]
    assert offered(user, "info", "mo") == ["more"]
    assert offered(user, "agents", "remove", "mi") == ["mine"]
    assert offered(user, "run", "--cwd", "") == [":folders"]
    assert offered(user, "run", "--mcp", "") == [":files"]
    assert offered(user, "run", "Hi", "--", "") == [":command"]
    assert offered(user, "run", "Hi", "--", "python", "") == [":files"]
    assert offered(user, "completion", "") == ["bash", "zsh", "fish"]


def test_a_broken_file_offers_no_agents_and_prints_no_error(user):
    user.set("[agents")
    assert offered(user, "run", "Hi", "-a", "") == []


SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SETUP = {
    "bash": f'PS1={READY!r}; eval "$(accord completion bash)"',
    "zsh": f'PROMPT={READY!r}; autoload -Uz compinit; compinit -D -u; eval "$(accord completion zsh)"',
    "fish": f"function fish_prompt; echo -n {READY!r}; end; accord completion fish | source",
}


class Shell:
    """A shell at a pseudo-terminal."""

    def __init__(self, name, user):
        self.screen = pyte.Screen(100, 30)
        self._stream = pyte.ByteStream(self.screen)
        self.fd, theirs = os.openpty()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])  # noqa: PTH120
        self.process = subprocess.Popen(
            # The first to open a terminal, without having one, gets it as its own: a shell needs that.
            ["/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>"$0"', os.ttyname(theirs), *SHELLS[name]],
            stdin=theirs,
            cwd=user.folder,
            start_new_session=True,
            env={**user.environment, "TERM": "xterm", "PATH": path},
        )
        os.close(theirs)

    def types(self, text):
        os.write(self.fd, text.encode())

    def shows(self, words):
        """Read until the screen shows this."""
        while words not in "\n".join(self.screen.display):
            data = b""
            with contextlib.suppress(OSError):
                data = os.read(self.fd, 65_536)
            assert data, f"{words!r} was not shown, but:\n" + "\n".join(self.screen.display)
            self._stream.feed(data)

    def end(self):
        self.process.kill()
        self.process.wait(DEADLINE)
        os.close(self.fd)


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes_commands_options_and_agents(user, name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed: apt-get install {name}")
    user.set('[agents.reviewer]\ncommand = "reviewer"\n')
    shell = Shell(name, user)
    try:
        shell.types(SETUP[name] + "\r")
        shell.shows(f"\n{READY}")
        shell.types("accord agents remo\t")
        shell.shows(f"{READY}accord agents remove ")
        shell.types("re\t")
        shell.shows(f"{READY}accord agents remove reviewer")
        shell.types("\x15accord run Hi --al\t")
        shell.shows(f"{READY}accord run Hi --allow ")
        shell.types("no\t")
        shell.shows(f"{READY}accord run Hi --allow none")
    finally:
        shell.end()
