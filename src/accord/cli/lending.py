"""What `accord run` lends to the agent, as `--allow` says.

| `--allow` | lent | requests for permission |
|---|---|---|
| `all` | files and terminals | all are granted |
| `reads` | files to read | granted if they only read |
| `ask` | the user's answers: permissions, forms and links at the terminal | the user decides |
| `none` | nothing | all are rejected |

The default is `ask` if a user sits at a terminal and can see the question, otherwise `none`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Literal

from accord.cli import printing
from accord.cli.endings import WrongUsage

if TYPE_CHECKING:
    from accord.client.client import Client
    from accord.client.remote_agent import RemoteAgent
    from accord.schema import v1

ALLOW = ["all", "reads", "ask", "none"]


@contextmanager
def lent(
    options: argparse.Namespace, while_asking: Callable[[], AbstractAsyncContextManager[object]]
) -> Generator[Client]:
    """The client that `--allow` describes. `while_asking` is entered while a question is open."""
    from accord.client.client import Client
    from accord.services.files.files import Files
    from accord.services.permissions.question import ALLOWANCES

    allow: Literal["all", "reads", "ask", "none"] = options.allow or (
        "ask" if not options.json and has_user() else "none"
    )
    if allow != "ask":
        files = {"all": Files(), "reads": Files(write=False)}.get(allow, False)
        yield Client(files=files, terminals=allow == "all", permissions=ALLOWANCES[allow])
        return
    from accord.services.console.terminal_user import TerminalUser
    from accord.services.elicitation.elicitation import Elicitation

    try:
        user = TerminalUser(while_asking=while_asking)
    except OSError as error:
        raise WrongUsage("--allow ask needs a terminal; use --allow all, reads or none") from error
    with user:
        yield Client(permissions=user.permit, elicitation=Elicitation(user.fill, user.visit))


def has_user() -> bool:
    """Whether we are in the foreground of a terminal, with a user who sees what is written there."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError, AttributeError):  # closed streams; Windows
        return False


def supported(servers: Sequence[v1.McpServer], remote: RemoteAgent) -> list[v1.McpServer]:
    """The MCP servers that the agent supports. Reports each of the others."""
    usable: list[v1.McpServer] = []
    for server in servers:
        if remote.peer.capabilities.allow(server):
            usable.append(server)
        else:
            name = getattr(server, "name", "of unknown type")
            printing.complain(f"accord run: MCP server {name} not used: the agent does not support its transport")
    return usable
