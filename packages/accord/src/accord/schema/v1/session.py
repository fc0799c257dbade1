"""Sessions: starting, finding, taking up again, ending.

Pages: session-setup, session-list, session-delete, session-modes, session-config-options; proposals: session-fork,
session-close, session-resume, additional-directories.
"""

from __future__ import annotations

from typing import Annotated, Literal, NewType, TypeAlias

from accord.schema.base import (
    Json,
    Model,
    NullAsDefault,
    Request,
    Tolerant,
    Unstable,
    ValidItems,
    unstable,
    words,
)
from accord.schema.v1.config import SessionConfigId, SessionConfigOption, SessionConfigValueId
from accord.schema.v1.content import ContentBlock
from accord.schema.v1.mcp import McpServer
from accord.schema.v1.models import ModelId, SessionModelState
from accord.schema.v1.modes import SessionModeId, SessionModeState

SessionId = NewType("SessionId", str)

SystemPromptMode: TypeAlias = Annotated[str, words("append", "override")]


@unstable
class SystemPrompt(Model):
    """Text of the client that extends or replaces the agent's system prompt."""

    mode: SystemPromptMode
    content: list[ContentBlock]


class NewSessionResponse(Model):
    """The result of `session/new`: the id of the session, with its modes and options."""

    session_id: SessionId
    modes: Tolerant[SessionModeState | None] = None
    config_options: Tolerant[ValidItems[SessionConfigOption] | None] = None
    models: Unstable[Tolerant[SessionModelState | None]] = None


class NewSessionRequest(Request[NewSessionResponse], method="session/new"):
    """Start a session in a folder."""

    cwd: str
    mcp_servers: NullAsDefault[list[McpServer]]
    additional_directories: NullAsDefault[list[str]] = []
    system_prompt: Unstable[SystemPrompt | None] = None


class LoadSessionResponse(Model):
    """The result of `session/load`, sent after the session's history was replayed."""

    modes: Tolerant[SessionModeState | None] = None
    config_options: Tolerant[ValidItems[SessionConfigOption] | None] = None
    models: Unstable[Tolerant[SessionModelState | None]] = None


class LoadSessionRequest(Request[LoadSessionResponse], method="session/load", needs="load_session"):
    """Reopen a session and replay its history as updates; needs `loadSession`."""

    session_id: SessionId
    cwd: str
    mcp_servers: NullAsDefault[list[McpServer]]
    additional_directories: NullAsDefault[list[str]] = []
    system_prompt: Unstable[SystemPrompt | None] = None


class ResumeSessionResponse(Model):
    """The result of `session/resume`: the session is open again; nothing was replayed."""

    modes: Tolerant[SessionModeState | None] = None
    config_options: Tolerant[ValidItems[SessionConfigOption] | None] = None
    models: Unstable[Tolerant[SessionModelState | None]] = None


class ResumeSessionRequest(
    Request[ResumeSessionResponse], method="session/resume", needs="session_capabilities.resume"
):
    """Reopen a session without a replay; needs `sessionCapabilities.resume`."""

    session_id: SessionId
    cwd: str
    additional_directories: NullAsDefault[list[str]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    system_prompt: Unstable[SystemPrompt | None] = None


@unstable
class ForkSessionResponse(Model):
    """The result of `session/fork`: the id of the copy."""

    session_id: SessionId
    modes: Tolerant[SessionModeState | None] = None
    config_options: Tolerant[ValidItems[SessionConfigOption] | None] = None
    models: Unstable[Tolerant[SessionModelState | None]] = None


class ForkSessionRequest(
    Request[ForkSessionResponse], method="session/fork", unstable=True, needs="session_capabilities.fork"
):
    """Copy a session to try another course; needs `sessionCapabilities.fork`."""

    session_id: SessionId
    cwd: str
    additional_directories: NullAsDefault[list[str]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    system_prompt: Unstable[SystemPrompt | None] = None


class SessionInfo(Model):
    """An entry in the list of sessions."""

    session_id: SessionId
    cwd: str
    additional_directories: Tolerant[ValidItems[str]] = []
    title: Tolerant[str | None] = None
    updated_at: Tolerant[str | None] = None  # RFC 3339
    archived: Unstable[Tolerant[bool | None]] = None


class ListSessionsResponse(Model):
    """One page of sessions; `next_cursor` fetches the next."""

    sessions: Tolerant[ValidItems[SessionInfo]]
    next_cursor: Tolerant[str | None] = None


SessionArchiveFilter: TypeAlias = Annotated[str, words("exclude", "include", "only")]


class ListSessionsRequest(Request[ListSessionsResponse], method="session/list", needs="session_capabilities.list"):
    """List the sessions that the agent knows; needs `sessionCapabilities.list`."""

    cwd: str | None = None
    cursor: str | None = None
    archived: Unstable[SessionArchiveFilter | None] = None


class CloseSessionResponse(Model):
    """The result of `session/close`: the session takes no more requests."""


class CloseSessionRequest(Request[CloseSessionResponse], method="session/close", needs="session_capabilities.close"):
    """Stop a session's work and free its resources; needs `sessionCapabilities.close`."""

    session_id: SessionId


class DeleteSessionResponse(Model):
    """The result of `session/delete`: the session is gone, whether or not it existed."""


class DeleteSessionRequest(
    Request[DeleteSessionResponse], method="session/delete", needs="session_capabilities.delete"
):
    """Delete a session permanently; needs `sessionCapabilities.delete`."""

    session_id: SessionId


@unstable
class ArchiveSessionResponse(Model):
    """The result of `session/archive`: the session is archived."""


class ArchiveSessionRequest(
    Request[ArchiveSessionResponse], method="session/archive", unstable=True, needs="session_capabilities.archive"
):
    """Archive a session; needs `sessionCapabilities.archive`."""

    session_id: SessionId


@unstable
class UnarchiveSessionResponse(Model):
    """The result of `session/unarchive`: the session is listed again."""


class UnarchiveSessionRequest(
    Request[UnarchiveSessionResponse], method="session/unarchive", unstable=True, needs="session_capabilities.archive"
):
    """Restore a session from the archive."""

    session_id: SessionId


SessionStatus: TypeAlias = Annotated[str, words("open", "saved")]


@unstable
class SessionStatusResponse(Model):
    """The result of `session/status`: whether a session is open in the agent, or only saved."""

    status: SessionStatus


class SessionStatusRequest(
    Request[SessionStatusResponse], method="session/status", unstable=True, needs="session_capabilities.status"
):
    """Ask for the status of a session; needs `sessionCapabilities.status`."""

    session_id: SessionId


@unstable
class SetSessionTitleResponse(Model):
    """The result of `session/set_title`: the title as the agent stores it."""

    title: str


class SetSessionTitleRequest(
    Request[SetSessionTitleResponse], method="session/set_title", unstable=True, needs="session_capabilities.title"
):
    """Set the title of a session; needs `sessionCapabilities.title`."""

    session_id: SessionId
    title: str


class SetSessionModeResponse(Model):
    """The result of `session/set_mode`: the mode is active."""


class SetSessionModeRequest(Request[SetSessionModeResponse], method="session/set_mode"):
    """Set the mode of a session."""

    session_id: SessionId
    mode_id: SessionModeId


@unstable
class SetSessionModelResponse(Model):
    """The result of `session/set_model`: the model is chosen."""


class SetSessionModelRequest(Request[SetSessionModelResponse], method="session/set_model", unstable=True):
    """Choose the model of a session among the agent's `models`."""

    session_id: SessionId
    model_id: ModelId


class SetSessionConfigOptionResponse(Model):
    """All config options after the change: changing one may change others."""

    config_options: Tolerant[ValidItems[SessionConfigOption]]


class SetSessionConfigOptionRequest(Request[SetSessionConfigOptionResponse], method="session/set_config_option"):
    """Set a config option; `type` is `boolean` where the value is a boolean."""

    session_id: SessionId
    config_id: SessionConfigId
    value: SessionConfigValueId | bool
    type: Tolerant[Literal["boolean"] | None] = None  # any other type goes with the id of a value

    @classmethod
    def of(
        cls,
        session_id: SessionId,
        config_id: SessionConfigId,
        value: SessionConfigValueId | bool,
        meta: dict[str, Json] | None = None,
    ) -> SetSessionConfigOptionRequest:
        return cls(session_id, config_id, value, "boolean" if isinstance(value, bool) else None, meta=meta)

    def __post_init__(self) -> None:
        if (self.type == "boolean") != isinstance(self.value, bool):
            raise ValueError("type must be 'boolean' if value is a boolean, and only then")
