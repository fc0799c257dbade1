"""Terminals that an agent has: commands it runs itself, for the client to show.

Differs from version 1, where the client runs commands for the agent: here terminals are reported, as upserts and output
chunks, and the one thing a client may ask is to cancel a command, where the terminal offers it.
"""

from __future__ import annotations

import base64
from typing import Annotated

from msgspec import UNSET, Meta

from accord.schema.base import Int64, Model, Patch, Request, Tolerant
from accord.schema.v1.session import SessionId
from accord.schema.v1.terminal import TerminalId
from accord.schema.v2.protocol import AbsolutePath
from accord.schema.v2.upserts import Upsert

_CellCount = Annotated[int, Meta(ge=1, le=2**16 - 1)]


class TerminalExitStatus(Model):
    """The end of a terminal's command, even if no details are known."""

    exit_code: Tolerant[Int64 | None] = None
    signal: Tolerant[str | None] = None


class TerminalOutput(Model):
    """The whole output that is kept, encoded in base64."""

    data: str

    @classmethod
    def of(cls, output: bytes) -> TerminalOutput:
        return cls(base64.b64encode(output).decode("ascii"))


class TerminalSize(Model):
    """The number of columns and rows of a terminal."""

    cols: _CellCount
    rows: _CellCount


class TerminalCancelCapabilities(Model):
    """Declares that the client may cancel a terminal's command."""


class TerminalCapabilities(Model):
    """The client's present options for a terminal."""

    cancel: Tolerant[TerminalCancelCapabilities | None] = None


class TerminalUpdate(Upsert, tag_field="sessionUpdate", tag="terminal_update"):
    """A terminal, or changes to it."""

    terminal_id: TerminalId
    command: Tolerant[Patch[str]] = UNSET
    cwd: Tolerant[Patch[AbsolutePath]] = UNSET
    output: Tolerant[Patch[TerminalOutput]] = UNSET
    exit_status: Tolerant[Patch[TerminalExitStatus]] = UNSET
    size: Tolerant[Patch[TerminalSize]] = UNSET
    capabilities: Tolerant[Patch[TerminalCapabilities]] = UNSET


class TerminalOutputChunk(Model, tag_field="sessionUpdate", tag="terminal_output_chunk"):
    """Output to append to a terminal's, encoded in base64 by itself."""

    terminal_id: TerminalId
    data: str

    @classmethod
    def of(cls, terminal_id: TerminalId, output: bytes) -> TerminalOutputChunk:
        return cls(terminal_id, base64.b64encode(output).decode("ascii"))


class CancelTerminalResponse(Model):
    """The result of `terminal/cancel`; the exit status follows when the command has ended."""


class CancelTerminalRequest(Request[CancelTerminalResponse], method="terminal/cancel"):
    """End a terminal's command; needs the terminal's `capabilities.cancel`."""

    session_id: SessionId
    terminal_id: TerminalId
