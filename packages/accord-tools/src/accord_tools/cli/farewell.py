"""The last line of a turn: its session, and the command that continues it. PURE."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

from accord.printable import label, printable
from accord_tools.cli.work_lines import line_of
from accord_tools.presentation.styled_text import Paragraph

LONGEST_ID = 500


def lines(options: argparse.Namespace, session_id: str, *, can_reopen: bool) -> Iterator[Paragraph]:
    """One line, with the command if the agent can open the session again."""
    command = command_for(options, session_id) if can_reopen else None
    if command is None:
        yield line_of((f"session {label(session_id, LONGEST_ID)}", "dim"))
    else:
        yield line_of((f"session {session_id}, continue it with: ", "dim"), (command, ""), wrap="whole")


def command_for(options: argparse.Namespace, session_id: str) -> str | None:
    """The command that continues a session; None if it cannot be shown as a shell would read it."""
    agent: list[str] = options.agent
    named: str | None = getattr(options, "named", None)
    words = ["accord", "run", "--session", session_id]
    words += ["--cwd", options.cwd] if options.cwd != "." else []
    words += ["-a", named] if named is not None else []
    command = f"{shlex.join(words)} PROMPT" + (f" -- {shlex.join(agent)}" if agent else "")
    return command if printable(command) == command and "\n" not in command and len(command) <= 4 * LONGEST_ID else None
