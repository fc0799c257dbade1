"""`accord chat` in a real terminal: tmux, of any size, with folders of its own."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import uuid

import pytest

from tests.waiting import wait_until

SIZES = [(80, 24), (200, 50)]
SMALL = pytest.mark.parametrize("size", SIZES[:1])
LARGE = pytest.mark.parametrize("size", SIZES[1:])

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


class Terminal:
    """A terminal in which `accord chat` runs."""

    def __init__(self, folder, size, *arguments, term="xterm-256color", through=(), **more):
        """`through` is a command that runs another one, given as a line for a shell, such as `ssh HOST`."""
        self._server = f"accord-{uuid.uuid4().hex}"
        self._size = size
        project, state = folder / "project", folder / "state"
        project.mkdir(exist_ok=True)
        (project / "README.md").write_text("# Hi\n")
        self.project = project
        variables = [f"XDG_STATE_HOME={state}", f"XDG_CONFIG_HOME={folder / 'config'}"]
        variables += [f"{name}={value}" for name, value in more.items()]
        demo = [] if "--" in arguments else ["--", sys.executable, "-m", "accord", "demo"]
        command = ["env", *variables, sys.executable, "-m", "accord", "chat", *arguments, *demo]
        if through:
            command = [*through, f"cd {shlex.quote(str(project))} && {shlex.join(command)}"]
        command = ["env", f"TERM={term}", *command]
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

    def resize(self, width, height):
        self._size = width, height
        self.tmux("resize-window", "-t", "chat", "-x", str(width), "-y", str(height))

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "chat")

    def sees(self, *texts):
        def are_there():
            screen = self.screen()
            return all(text in screen for text in texts)

        try:
            wait_until(are_there)
        except AssertionError:
            raise AssertionError(f"{texts} are not on the screen:\n{self.screen()}") from None
        assert all(len(line) <= self._size[0] for line in self.screen().splitlines())

    def no_longer_sees(self, text):
        """Wait until this has left the screen: a dialog lets what is behind it be seen, but takes the keys."""
        wait_until(lambda: text not in self.screen())

    def sees_idle(self):
        """Wait until the agent does nothing."""
        wait_until(lambda: not any(word in self.screen() for word in (" working ", " stopping ", " queued")))

    def press(self, *keys):
        self.tmux("send-keys", "-t", "chat", *keys)

    def answer(self, key, title):
        """Answer the open question, once it takes keys: then its title begins with a question mark."""

        def takes_keys():
            screen = self.screen()
            titles = [line for line in screen.splitlines() if line.startswith((" ? ", " … ", " . "))]
            return "show all" in screen and titles[-1].startswith(f" ? {title}")

        wait_until(takes_keys)
        self.press(key)

    def write(self, text):
        """Type a text, and send nothing."""
        self.tmux("send-keys", "-t", "chat", "-l", text)

    def send(self, text):
        self.write(text)
        self.press("Enter")

    def has_ended(self):
        return self.tmux("display-message", "-p", "-t", "chat", "#{pane_dead}").strip() == "1"

    def close(self):
        self.tmux("kill-server")
