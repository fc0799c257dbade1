"""AGENT on the command line: a command or URL after `--`, or nothing for the built-in agent."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

HELP = "the agent's command or URL, after -- (default: the built-in demo agent)"


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments before the first `--`, and the agent after it."""
    if "--" not in arguments:
        return list(arguments), []
    place = list(arguments).index("--")
    return list(arguments[:place]), list(arguments[place + 1 :])


def agent_of(options: argparse.Namespace) -> Sequence[str]:
    """The agent to connect to: a single argument may be a whole command, unless a program has that name."""
    agent: list[str] = options.agent
    if not agent:
        return [sys.executable, "-m", "accord", "demo"]
    if len(agent) == 1 and shutil.which(agent[0]) is None:
        return agent[0]
    return agent
