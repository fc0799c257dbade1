"""The chat over SSH, in a plain xterm without true colours and without UTF-8."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.tui.real_terminal import needs_tmux
from tests.waiting import wait_until

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")

pytestmark = [needs_tmux, pytest.mark.skipif(SSHD is None or shutil.which("ssh") is None, reason="needs sshd and ssh")]

SETTINGS = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
PasswordAuthentication no
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def ssh(tmp_path):
    """The command that logs in at a server of its own on this machine."""
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where the server locks itself in
    for name in ("host", "user"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(made, check=True, stdin=subprocess.DEVNULL)
    port = free_port()
    (folder / "settings").write_text(SETTINGS.format(port=port, folder=folder))
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "settings")], stderr=log)
    try:
        wait_until(lambda: "Server listening" in (folder / "log").read_text() or server.poll() is not None)
        assert server.poll() is None, (folder / "log").read_text()
        known = [
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            f"UserKnownHostsFile={folder / 'known'}",
            "-o",
            "LogLevel=ERROR",
        ]
        yield [
            "ssh",
            "-tt",
            "-F",
            "none",
            "-i",
            str(folder / "user"),
            "-p",
            str(port),
            *known,
            f"{getpass.getuser()}@127.0.0.1",
        ]
    finally:
        server.kill()
        server.wait()


def test_a_turn_a_permission_and_a_new_size(terminal, ssh):
    it = terminal((80, 24), term="xterm", through=ssh, LC_ALL="C")
    it.sees("Accord demo", "Ask", "enter send")
    it.send("/edit README.md")
    it.sees("? Allow this edit?")
    assert it.screen().isascii()
    it.answer("y", "Allow this edit")
    it.sees("I wrote README.md.")
    it.sees_idle()
    it.resize(100, 30)
    wait_until(lambda: "-" * 100 in it.screen())
    it.send("hello")
    it.sees("I am Accord's built-in agent")
    it.press("C-q")
    wait_until(it.has_ended)


def test_what_was_being_written_when_the_line_broke_is_there_again(terminal, ssh, tmp_path):
    it = terminal((80, 24), term="xterm", through=ssh, LC_ALL="C")
    it.sees("Accord demo", "Ask")
    it.write("a long thought")
    it.sees("a long thought")
    drafts = tmp_path / "state"
    wait_until(lambda: any("a long thought" in file.read_text() for file in drafts.rglob("*") if file.is_file()))
    os.kill(int(it.tmux("display-message", "-p", "-t", "chat", "#{pane_pid}")), signal.SIGKILL)  # ssh
    wait_until(it.has_ended)
    later = terminal((80, 24), term="xterm", through=ssh, LC_ALL="C")
    later.sees("Accord demo", "a long thought")
