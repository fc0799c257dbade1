"""Names of agents that a team keeps in one file, which the variable TEAM_AGENTS names: `accord.connect("reviewer")`.

reviewer = ["gemini", "--acp", "--model", "gemini-pro"]
tester = "https://agents.example/tester"
"""

from __future__ import annotations

import os
import tomllib
from typing import Any

import accord
import accord.http


def find_agent(word: str, **options: Any) -> accord.Target | None:
    """The plug-in that the entry point names: the target for a name, or None for one that is not in the file.

    `options` are those of `accord.connect`: the caller's `env`, `cwd` and so on are for commands, `token` and the like
    for URLs.
    """
    if (file := os.environ.get("TEAM_AGENTS")) is None:
        return None
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            found = tomllib.load(opened).get(word)
    except (OSError, ValueError) as error:
        raise accord.ConfigurationError(f"cannot read the team's agents in {file}: {error}") from error
    if isinstance(found, str):
        return accord.http.UrlTarget(found, **picked(options, "token", "headers", "proxy"))
    return found and accord.CommandTarget(found, **picked(options, "cwd", "env", "inherit", "on_stderr"))


def picked(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names}
