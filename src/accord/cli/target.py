"""AGENT on the command line: a command behind `--`, a URL, or nothing for the built-in agent."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

HELP = "the agent's command or URL, behind -- (default: the built-in demo agent)"


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands before the first `--`, and the agent behind it."""
    if "--" not in arguments:
        return list(arguments), []
    place = list(arguments).index("--")
    return list(arguments[:place]), list(arguments[place + 1 :])


def agent_of(options: argparse.Namespace) -> Sequence[str]:
    """What to connect with: one word may be a whole command, if no program has that name."""
    agent: list[str] = options.agent
    if not agent:
        return [sys.executable, "-m", "accord", "demo"]
    if len(agent) == 1 and shutil.which(agent[0]) is None:
        return agent[0]
    return agent
