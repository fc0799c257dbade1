"""Terminals that a client lends: commands it runs for the agent. Page: terminals."""

from __future__ import annotations

from typing import NewType

from accord.schema.base import Model, NullAsDefault, Request, Tolerant, Uint32, Uint64
from accord.schema.v1.mcp import EnvVariable
from accord.schema.v1.session import SessionId

TerminalId = NewType("TerminalId", str)


class CreateTerminalResponse(Model):
    """The command runs."""

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
    """How a command ended: its exit code, or the signal that ended it."""

    exit_code: Tolerant[Uint32 | None] = None
    signal: Tolerant[str | None] = None


class TerminalOutputResponse(Model):
    """The output kept so far, and how the command ended if it has."""

    output: str
    truncated: bool
    exit_status: Tolerant[TerminalExitStatus | None] = None


class TerminalOutputRequest(Request[TerminalOutputResponse], method="terminal/output"):
    """Look at the output now, without waiting."""

    session_id: SessionId
    terminal_id: TerminalId


class WaitForTerminalExitResponse(Model):
    """The command has ended."""

    exit_code: Tolerant[Uint32 | None] = None
    signal: Tolerant[str | None] = None


class WaitForTerminalExitRequest(Request[WaitForTerminalExitResponse], method="terminal/wait_for_exit"):
    """Wait until the command ends."""

    session_id: SessionId
    terminal_id: TerminalId


class KillTerminalResponse(Model):
    """The command was told to die; its terminal can still be read."""


class KillTerminalRequest(Request[KillTerminalResponse], method="terminal/kill"):
    """End the command and keep the terminal."""

    session_id: SessionId
    terminal_id: TerminalId


class ReleaseTerminalResponse(Model):
    """The terminal is gone."""


class ReleaseTerminalRequest(Request[ReleaseTerminalResponse], method="terminal/release"):
    """End the command if it runs, and forget the terminal."""

    session_id: SessionId
    terminal_id: TerminalId
