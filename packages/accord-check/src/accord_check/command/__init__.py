"""`accord check`: judges agents, clients and recorded traces by the clauses of the protocol.

The entry point `check` of the group `accord.commands` names `COMMAND`. `accord --help` imports this module, and the
others only `accord check` does.
"""

from __future__ import annotations

from accord_tools.cli.command import Command

COMMAND = Command.of_module(
    "accord_check.command.subcommands", "Judge an agent or a trace by the clauses of the protocol."
)
