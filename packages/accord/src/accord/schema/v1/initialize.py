"""The first call of a connection: versions, capabilities, who is who. Page: initialization."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Request, Shape, Tolerant, Uint16, Unstable, ValidItems, unstable
from accord.schema.v1.auth import AgentAuthCapabilities, AuthCapabilities, AuthMethod
from accord.schema.v1.config import SessionConfigOptionsCapabilities
from accord.schema.v1.nes_capabilities import ClientNesCapabilities, NesCapabilities, PositionEncodingKind

ProtocolVersion: TypeAlias = Annotated[Uint16, "ProtocolVersion"]
"""One number, raised only when something breaks."""


class Implementation(Model):
    """The name, title and version of an agent or client."""

    name: str
    version: str
    title: Tolerant[str | None] = None


# What a client can do


class FileSystemCapabilities(Model):
    """The file methods that the client answers."""

    read_text_file: Tolerant[bool] = False
    write_text_file: Tolerant[bool] = False


class NoticeCapabilities(Shape):
    """Declares that the client shows notices."""


class CompactionCapabilities(Shape):
    """Declares that the client shows compaction."""


class ClientSessionCapabilities(Model):
    """The optional parts of a session that the client shows."""

    compaction: Tolerant[CompactionCapabilities | None] = None
    config_options: Tolerant[SessionConfigOptionsCapabilities | None] = None
    notices: Tolerant[NoticeCapabilities | None] = None


@unstable
class SubagentCapabilities(Model):
    """Declares that the client shows subagents."""


@unstable
class PlanCapabilities(Model):
    """Declares that the client takes several plans, updated and removed by id."""


class ElicitationFormCapabilities(Model):
    """Declares that the client can show forms."""


class ElicitationUrlCapabilities(Model):
    """Declares that the client can send its user to a URL."""


class ElicitationCapabilities(Model):
    """The modes of elicitation that the client supports."""

    form: Tolerant[ElicitationFormCapabilities | None] = None
    url: Tolerant[ElicitationUrlCapabilities | None] = None


class ClientCapabilities(Model):
    """The methods that the client answers, and the optional features that it shows."""

    fs: Tolerant[FileSystemCapabilities] = FileSystemCapabilities()
    terminal: Tolerant[bool] = False
    session: Tolerant[ClientSessionCapabilities | None] = None
    auth: Tolerant[AuthCapabilities] = AuthCapabilities()
    elicitation: Tolerant[ElicitationCapabilities | None] = None
    subagents: Unstable[Tolerant[SubagentCapabilities | None]] = None
    plan: Unstable[Tolerant[PlanCapabilities | None]] = None
    nes: Unstable[Tolerant[ClientNesCapabilities | None]] = None
    position_encodings: Unstable[Tolerant[ValidItems[PositionEncodingKind]]] = []


# What an agent can do


class PromptCapabilities(Model):
    """The content that a prompt may hold besides text and resource links."""

    image: Tolerant[bool] = False
    audio: Tolerant[bool] = False
    embedded_context: Tolerant[bool] = False


class McpCapabilities(Model):
    """The MCP transports that the agent supports besides stdio."""

    http: Tolerant[bool] = False
    sse: Tolerant[bool] = False
    acp: Unstable[Tolerant[bool]] = False


class SessionListCapabilities(Model):
    """Declares that the agent answers `session/list`."""


class SessionDeleteCapabilities(Model):
    """Declares that the agent answers `session/delete`."""


class SessionAdditionalDirectoriesCapabilities(Model):
    """Declares that a session may have folders besides `cwd`."""


class SessionResumeCapabilities(Model):
    """Declares that the agent answers `session/resume`."""


class SessionCloseCapabilities(Model):
    """Declares that the agent answers `session/close`."""


@unstable
class SessionForkCapabilities(Model):
    """Declares that the agent answers `session/fork`."""


@unstable
class SessionArchiveCapabilities(Model):
    """Declares that the agent answers `session/archive` and `session/unarchive`."""


@unstable
class SessionStatusCapabilities(Model):
    """Declares that the agent answers `session/status`."""


@unstable
class SessionTitleCapabilities(Model):
    """Declares that the agent answers `session/set_title`."""


@unstable
class SessionSystemPromptOverrideCapabilities(Model):
    """Declares that the client may replace the agent's system prompt."""


@unstable
class SessionSystemPromptModeCapabilities(Model):
    """The modes of system prompt besides appending."""

    override: Tolerant[SessionSystemPromptOverrideCapabilities | None] = None


@unstable
class SessionSystemPromptCapabilities(Model):
    """Declares that the client may add to the agent's system prompt."""

    mode: Tolerant[SessionSystemPromptModeCapabilities | None] = None


class SessionCapabilities(Model):
    """The optional session methods that the agent answers."""

    list: Tolerant[SessionListCapabilities | None] = None
    delete: Tolerant[SessionDeleteCapabilities | None] = None
    additional_directories: Tolerant[SessionAdditionalDirectoriesCapabilities | None] = None
    resume: Tolerant[SessionResumeCapabilities | None] = None
    close: Tolerant[SessionCloseCapabilities | None] = None
    fork: Unstable[Tolerant[SessionForkCapabilities | None]] = None
    archive: Unstable[Tolerant[SessionArchiveCapabilities | None]] = None
    status: Unstable[Tolerant[SessionStatusCapabilities | None]] = None
    title: Unstable[Tolerant[SessionTitleCapabilities | None]] = None
    system_prompt: Unstable[Tolerant[SessionSystemPromptCapabilities | None]] = None


@unstable
class ProvidersCapabilities(Model):
    """Declares that the client may choose the agent's providers."""


class AgentCapabilities(Model):
    """The methods and features that the agent offers."""

    load_session: Tolerant[bool] = False
    prompt_capabilities: Tolerant[PromptCapabilities] = PromptCapabilities()
    mcp_capabilities: Tolerant[McpCapabilities] = McpCapabilities()
    session_capabilities: Tolerant[SessionCapabilities] = SessionCapabilities()
    auth: Tolerant[AgentAuthCapabilities] = AgentAuthCapabilities()
    providers: Unstable[Tolerant[ProvidersCapabilities | None]] = None
    nes: Unstable[Tolerant[NesCapabilities | None]] = None
    position_encoding: Unstable[Tolerant[PositionEncodingKind | None]] = None


class InitializeResponse(Model):
    """The result of `initialize`: the agreed protocol version, and what the agent offers."""

    protocol_version: ProtocolVersion
    agent_capabilities: Tolerant[AgentCapabilities] = AgentCapabilities()
    auth_methods: Tolerant[ValidItems[AuthMethod]] = []
    agent_info: Tolerant[Implementation | None] = None


class InitializeRequest(Request[InitializeResponse], method="initialize", handshake=True):
    """Open the connection: the newest protocol version of the client, and what it offers."""

    protocol_version: ProtocolVersion
    client_capabilities: Tolerant[ClientCapabilities] = ClientCapabilities()
    client_info: Tolerant[Implementation | None] = None
