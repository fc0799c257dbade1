"""Terminals that a client lends: commands it runs for the agent. Page: terminals."""

from __future__ import annotations

from typing import NewType

from accord.schema.base import Model, NullAsDefault, Request, Tolerant, Uint32, Uint64
from accord.schema.v1.mcp import EnvVariable
from accord.schema.v1.session import SessionId

TerminalId = NewType("TerminalId", str)


class CreateTerminalResponse(Model):
    """The result of `terminal/create`: the id of the terminal in which the command runs."""

    terminal_id: TerminalId


class CreateTerminalRequest(Request[CreateTerminalResponse], method="terminal/create", needs="terminal"):
    """Run a command; the terminal stays until it is released."""

    session_id: SessionId
    command: str
    args: NullAsDefault[list[str]] = []
    env: NullAsDefault[list[EnvVariable]] = []
    cwd: str | None = None
    output_byte_limit: Uint64 | None = None


class TerminalExitStatus(Model):
    """The exit code of a command, or the signal that ended it."""

    exit_code: Tolerant[Uint32 | None] = None
    signal: Tolerant[str | None] = None


class TerminalOutputResponse(Model):
    """The result of `terminal/output`: the output kept so far, and the exit status after the end."""

    output: str
    truncated: bool
    exit_status: Tolerant[TerminalExitStatus | None] = None


class TerminalOutputRequest(Request[TerminalOutputResponse], method="terminal/output"):
    """Read a terminal's output without waiting."""

    session_id: SessionId
    terminal_id: TerminalId


class WaitForTerminalExitResponse(Model):
    """The result of `terminal/wait_for_exit`: how the command ended."""

    exit_code: Tolerant[Uint32 | None] = None
    signal: Tolerant[str | None] = None


class WaitForTerminalExitRequest(Request[WaitForTerminalExitResponse], method="terminal/wait_for_exit"):
    """Wait until a terminal's command ends."""

    session_id: SessionId
    terminal_id: TerminalId


class KillTerminalResponse(Model):
    """The result of `terminal/kill`: the command was told to end; its output can still be read."""


class KillTerminalRequest(Request[KillTerminalResponse], method="terminal/kill"):
    """End a terminal's command and keep the terminal."""

    session_id: SessionId
    terminal_id: TerminalId


class ReleaseTerminalResponse(Model):
    """The result of `terminal/release`: the terminal is gone."""


class ReleaseTerminalRequest(Request[ReleaseTerminalResponse], method="terminal/release"):
    """Release a terminal, and end its command if it runs."""

    session_id: SessionId
    terminal_id: TerminalId
