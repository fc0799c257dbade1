"""Sessions: starting, finding, taking up again, ending. Proposals: required-session-methods, session-resume-replay.

Differs from version 1: `session/load` is `session/resume` with `replay_from`; there are no modes, but config options;
answers may bring the first commands.
"""

from __future__ import annotations

from typing import NewType, TypeAlias

from accord.schema.base import Model, NullAsDefault, Open, Request, Tolerant, Unstable, ValidItems, unstable
from accord.schema.v1.session import SessionArchiveFilter, SessionId, SessionStatus, SystemPromptMode
from accord.schema.v2.commands import AvailableCommand
from accord.schema.v2.config import SessionConfigOption
from accord.schema.v2.content import ContentBlock
from accord.schema.v2.mcp import McpServer
from accord.schema.v2.protocol import AbsolutePath
from accord.schema.v2.state import StateUpdate

SessionListCursor = NewType("SessionListCursor", str)


@unstable
class SystemPrompt(Model):
    """Text of the client that extends or replaces the agent's system prompt."""

    mode: SystemPromptMode
    content: list[ContentBlock]


class NewSessionResponse(Model):
    """The result of `session/new`: the id of the session, which is idle."""

    session_id: SessionId
    config_options: Tolerant[ValidItems[SessionConfigOption]] = []
    available_commands: Tolerant[ValidItems[AvailableCommand]] = []


class NewSessionRequest(Request[NewSessionResponse], method="session/new"):
    """Start a session in a folder."""

    cwd: AbsolutePath
    mcp_servers: NullAsDefault[list[McpServer]] = []
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    system_prompt: Unstable[SystemPrompt | None] = None


class ReplayFromStart(Model, tag_field="type", tag="start"):
    """Replay the whole history that the agent keeps."""


ReplayFrom: TypeAlias = Open[ReplayFromStart]
"""Where a replay begins, that place included."""


class ResumeSessionResponse(Model):
    """The result of `session/resume`, sent after the requested replay and a state update."""

    config_options: Tolerant[ValidItems[SessionConfigOption]] = []
    available_commands: Tolerant[ValidItems[AvailableCommand]] = []


class ResumeSessionRequest(Request[ResumeSessionResponse], method="session/resume"):
    """Reopen a session, with or without a replay of its history as updates."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    replay_from: ReplayFrom | None = None
    system_prompt: Unstable[SystemPrompt | None] = None


@unstable
class ForkSessionResponse(Model):
    """The result of `session/fork`: the id of the copy."""

    session_id: SessionId
    config_options: Tolerant[ValidItems[SessionConfigOption]] = []
    available_commands: Tolerant[ValidItems[AvailableCommand]] = []


class ForkSessionRequest(Request[ForkSessionResponse], method="session/fork", unstable=True):
    """Copy a session to try another course; needs `session.fork`."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    system_prompt: Unstable[SystemPrompt | None] = None


class SessionInfo(Model):
    """An entry in the list of sessions."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    title: Tolerant[str | None] = None
    updated_at: Tolerant[str | None] = None  # RFC 3339
    archived: Unstable[Tolerant[bool | None]] = None


class ListSessionsResponse(Model):
    """One page of sessions; `next_cursor`, even an empty one, fetches the next."""

    sessions: Tolerant[ValidItems[SessionInfo]]
    next_cursor: SessionListCursor | None = None


class ListSessionsRequest(Request[ListSessionsResponse], method="session/list"):
    """List the sessions that the agent knows."""

    cwd: AbsolutePath | None = None
    cursor: SessionListCursor | None = None
    archived: Unstable[SessionArchiveFilter | None] = None


@unstable
class SessionStatusResponse(Model):
    """The result of `session/status`: whether a session is open or only saved, and its state."""

    status: SessionStatus
    state: Tolerant[StateUpdate | None] = None


class SessionStatusRequest(Request[SessionStatusResponse], method="session/status", unstable=True):
    """Ask for the status of a session; needs `session.status`."""

    session_id: SessionId
