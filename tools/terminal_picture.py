"""Draws the terminal client for the documentation: runs `accord chat` in tmux and writes what it shows as SVG.

    python tools/terminal_picture.py docs/images

It draws three pictures with the built-in agent: `chat.svg`, a diff and the question whether to allow it;
`chat-review.svg`, the review of changes; `chat-sessions.svg`, the list of sessions. It needs tmux and the extra `cli`.
Run it again when the screen has changed, and look at the results.
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

COLUMNS, ROWS = 100, 25
PATIENCE = 30.0
"""Seconds until the screen shows what was asked for."""

STEPS = (
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
"""What is typed, the key after it, and what the screen has then. `chat...` for a key draws a picture of that name."""

FOREIGN = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that rich would load from another host."""

BACKGROUND = "#121212"
"""The background of the client's default theme."""


class Screen:
    """A terminal that tmux keeps, on a socket of its own."""

    def __init__(self, folder: Path) -> None:
        self._command = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._folder = folder

    def start(self, *command: str) -> None:
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        settings = ["-e", f"HOME={self._folder}", "-e", "COLORTERM=truecolor", "-c", str(self._folder / "notes")]
        self._run("new-session", "-d", *size, *settings, *command)

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


def drawn(shown: str, name: str) -> str:
    """A screen as SVG."""
    console = Console(width=COLUMNS, record=True, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(shown.rstrip("\n")), no_wrap=True, crop=True)
    picture = console.export_svg(title="accord chat", theme=SVG_EXPORT_THEME, unique_id=f"accord-{name}")
    # Beyond the last character of a line a terminal has the client's background.
    return FOREIGN.sub("", picture).replace(SVG_EXPORT_THEME.background_color.hex, BACKGROUND)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory() as name:
        notes = Path(name) / "notes"
        notes.mkdir()
        (notes / "README.md").write_text("# Notes\n\n- Buy ink\n", encoding="utf-8")
        screen = Screen(Path(name))
        accord = (sys.executable, "-m", "accord")
        screen.start(*accord, "chat", "--", *accord, "demo")
        try:
            for typed, key, words in STEPS:
                if key.startswith("chat"):
                    time.sleep(1)  # for the rest of the drawing, which has no event
                    (Path(sys.argv[1]) / f"{key}.svg").write_text(drawn(screen.shown(), key), encoding="utf-8")
                    continue
                screen.type(typed, key)
                screen.wait_for(words)
        finally:
            screen.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
