"""Toad in a terminal: how it is started with an agent, and what its user does."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from interop.terminal import Terminal
from interop.toad import installed

SETTINGS = {"statistics": {"allow_collect": False}, "notifications": {"system": "never", "enable_sounds": False}}
PROMPT = "\N{LEFT THREE QUARTERS BLOCK} \N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
"""How the line begins in which its user types."""
LISTENING = "\N{RETURN SYMBOL} Send"
"""What the last line offers when the keys go there."""
NOWHERE = "http://127.0.0.1:9"
"""It asks the network for news of itself when it starts; here nothing is sent."""


@dataclass(frozen=True)
class Toad:
    """Toad in one folder, at a home of its own."""

    work: Path
    home: Path
    variables: Mapping[str, str]
    """More of them, which go to its agent too."""

    @contextmanager
    def started(self, agent: Sequence[str] = ()) -> Generator[Screen]:
        """With this agent, or where one chooses among agents and sessions."""
        settings = self.home / ".config" / "toad" / "toad.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps(SETTINGS))
        variables = {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "TEXTUAL_ANIMATIONS": "none", **self.variables}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **variables}
        chosen = ["acp", shlex.join(agent), str(self.work), "--title", "agent"] if agent else [str(self.work)]
        with Screen([str(installed()), *chosen], cwd=self.work, env=environment) as screen:
            if agent:
                screen.wait_for("agent connected")
            yield screen


class Screen(Terminal):
    """What it shows, and what its user does."""

    def say(self, words: str) -> None:
        """Send a prompt. It is pasted, for while one types, Toad has suggestions."""
        self.wait_for(LISTENING)
        self.paste(words)
        self.wait_for(f"{PROMPT} {words}")
        self.press("enter")

    def cancel(self) -> None:
        """It wants the key twice."""
        self.press("escape", "escape")

    def quit(self) -> int:
        """Its exit code."""
        self.press("ctrl+q")
        return self.wait_for_end()
