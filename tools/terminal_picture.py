"""Draws screens for the documentation: runs commands in tmux and writes what they show as SVG.

    python tools/terminal_picture.py docs/images

It draws the home screen (`home.svg`), `accord --help` (`help.svg`), and `accord dev` with three mistakes (`dev.svg`);
and of the terminal client, with the built-in agent, a diff and the question whether to allow it (`chat.svg`), the
review of changes (`chat-review.svg`), and the list of sessions (`chat-sessions.svg`). It needs tmux and the extra
`cli`. Run it again when a screen has changed, and look at the results.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

PATIENCE = 30.0
"""Seconds until the screen shows what was asked for."""

GREETER = """\
import time

import accord

agent = accord.Agent("greeter")


@agent.on_prompt
async def reply(turn):
    await turn.say("Hello.")
    turn.say("lost")
    time.sleep(2)
    async with turn.tool("Read", kind="reed"):
        pass


agent.run()
"""
"""An agent with a missing `await`, a call that blocks, and a wrong word."""

Step = tuple[str, str, str]
"""What is typed, the key after it, and what the screen has then. A step without words draws a picture of the key."""

HOME: tuple[Step, ...] = (("", "", "all commands"), ("", "home", ""))
HELP: tuple[Step, ...] = (("", "", "with examples"), ("", "help", ""))
DEV: tuple[Step, ...] = (("", "", "Ctrl-D ends"), ("hello", "Enter", "did you mean read"), ("", "dev", ""))
CHAT: tuple[Step, ...] = (
    ("", "", "enter"),
    ("What is a tool call?", "Enter", "Try"),
    ("/edit", "Enter", "Allow"),
    ("", "chat", ""),
    ("y", "", "I wrote"),
    ("/edit README.md", "Enter", "y Allow"),
    ("y", "", "I wrote README.md"),
    ("", "C-d", "2 changed files"),
    ("", "Right", "And once more"),
    ("", "chat-review", ""),
    ("", "Escape", "enter"),
    ("/title Notes about ink", "Enter", "about ink"),
    ("", "C-n", "2 Accord demo"),
    ("Who are you?", "Enter", "built-in agent"),
    ("", "C-s", "> Who are you?"),
    ("", "chat-sessions", ""),
)

SCREENS: tuple[tuple[str, int, int, tuple[Step, ...]], ...] = (
    ("accord", 80, 24, HOME),
    ("accord --help", 80, 62, HELP),
    ("accord dev greeter.py", 80, 30, DEV),
    ("accord chat -- accord demo", 100, 25, CHAT),
)
"""A command, the columns and rows of its terminal, and the steps."""

FOREIGN = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that rich would load from another host."""

BACKGROUND = "#121212"
"""The background of the client's default theme."""


class Screen:
    """A terminal that tmux keeps, on a socket of its own."""

    def __init__(self, folder: Path) -> None:
        self._command = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._folder = folder

    def start(self, command: str, columns: int, rows: int) -> None:
        """Run a command below its own line, in a terminal without the variables of this one."""
        shown = "" if "chat" in command else f"printf '$ {command}\\n'; "
        variables = [f"HOME={self._folder}", f"PATH={Path(sys.executable).parent}:/usr/bin:/bin"]
        terminal = ["TERM=tmux-256color", "COLORTERM=truecolor", "LANG=C.UTF-8"]
        shell = ["env", "-i", *variables, *terminal, "sh", "-c", f"{shown}{command}; exec sleep 60"]
        size = ["-x", str(columns), "-y", str(rows), "-c", str(self._folder / "notes")]
        self._run("new-session", "-d", *size, *shell)

    def type(self, text: str, key: str) -> None:
        if text:
            self._run("send-keys", "-l", text)
        if key:
            self._run("send-keys", key)

    def shown(self) -> str:
        """The screen, with its colours."""
        return self._run("capture-pane", "-e", "-p")

    def wait_for(self, words: str) -> None:
        """Wait until the screen has these words, and an open question takes keys."""
        end = time.monotonic() + PATIENCE
        while words not in (shown := self._run("capture-pane", "-p")) or "\n … " in shown:
            if time.monotonic() > end:
                raise SystemExit(f"the screen does not show {words!r}:\n{shown}")
            time.sleep(0.1)

    def stop(self) -> None:
        self._run("kill-server")

    def _run(self, *arguments: str) -> str:
        return subprocess.run([*self._command, *arguments], check=True, capture_output=True, text=True).stdout


def drawn(shown: str, name: str, command: str, columns: int) -> str:
    """A screen as SVG."""
    console = Console(width=columns, record=True, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(shown.rstrip("\n")), no_wrap=True, crop=True)
    title = command.partition(" -- ")[0]
    picture = console.export_svg(title=title, theme=SVG_EXPORT_THEME, unique_id=f"accord-{name}")
    # Beyond the last character of a line a terminal has the client's background.
    return FOREIGN.sub("", picture).replace(SVG_EXPORT_THEME.background_color.hex, BACKGROUND)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    for command, columns, rows, steps in SCREENS:
        with tempfile.TemporaryDirectory() as name:
            notes = Path(name) / "notes"
            notes.mkdir()
            (notes / "README.md").write_text("# Notes\n\n- Buy ink\n", encoding="utf-8")
            (notes / "greeter.py").write_text(GREETER, encoding="utf-8")
            screen = Screen(Path(name))
            screen.start(command, columns, rows)
            try:
                for typed, key, words in steps:
                    if words:
                        screen.type(typed, key)
                        screen.wait_for(words)
                        continue
                    time.sleep(1)  # for the rest of the drawing, which has no event
                    picture = drawn(screen.shown(), key, command, columns)
                    (Path(sys.argv[1]) / f"{key}.svg").write_text(picture, encoding="utf-8")
            finally:
                screen.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
