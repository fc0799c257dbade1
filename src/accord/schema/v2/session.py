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
    """What the client adds to the agent's system prompt, or puts in its place."""

    mode: SystemPromptMode
    content: list[ContentBlock]


class NewSessionResponse(Model):
    """The session exists, idle until it says otherwise."""

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
    """All of the past that is kept."""


ReplayFrom: TypeAlias = Open[ReplayFromStart]
"""Where a replay begins, that place included."""


class ResumeSessionResponse(Model):
    """The session goes on; what was to be replayed has been, and a state update said how the session stands."""

    config_options: Tolerant[ValidItems[SessionConfigOption]] = []
    available_commands: Tolerant[ValidItems[AvailableCommand]] = []


class ResumeSessionRequest(Request[ResumeSessionResponse], method="session/resume"):
    """Take up a session, with or without a replay of its past as updates."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    replay_from: ReplayFrom | None = None
    system_prompt: Unstable[SystemPrompt | None] = None


@unstable
class ForkSessionResponse(Model):
    """The copy exists, under its own id."""

    session_id: SessionId
    config_options: Tolerant[ValidItems[SessionConfigOption]] = []
    available_commands: Tolerant[ValidItems[AvailableCommand]] = []


class ForkSessionRequest(Request[ForkSessionResponse], method="session/fork", unstable=True):
    """Copy a session, so that two ways can be tried; needs `session.fork`."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    system_prompt: Unstable[SystemPrompt | None] = None


class SessionInfo(Model):
    """A session in a list."""

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
    """The sessions that the agent knows."""

    cwd: AbsolutePath | None = None
    cursor: SessionListCursor | None = None
    archived: Unstable[SessionArchiveFilter | None] = None


@unstable
class SessionStatusResponse(Model):
    """Whether a session is open in the agent, or only saved; and how an open one stands."""

    status: SessionStatus
    state: Tolerant[StateUpdate | None] = None


class SessionStatusRequest(Request[SessionStatusResponse], method="session/status", unstable=True):
    """Ask how a session stands; needs `session.status`."""

    session_id: SessionId
