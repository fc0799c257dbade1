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
    """A program, by its name for programs and its title for people."""

    name: str
    version: str
    title: Tolerant[str | None] = None


# What a client can do


class FileSystemCapabilities(Model):
    """The files that the client lends."""

    read_text_file: Tolerant[bool] = False
    write_text_file: Tolerant[bool] = False


class NoticeCapabilities(Shape):
    """The client shows notices."""


class CompactionCapabilities(Shape):
    """The client shows compaction."""


class ClientSessionCapabilities(Model):
    """What the client shows of a session beyond what every client does."""

    compaction: Tolerant[CompactionCapabilities | None] = None
    config_options: Tolerant[SessionConfigOptionsCapabilities | None] = None
    notices: Tolerant[NoticeCapabilities | None] = None


@unstable
class SubagentCapabilities(Model):
    """The client shows subagents."""


@unstable
class PlanCapabilities(Model):
    """The client takes plan operations: several plans, updated and removed by id."""


class ElicitationFormCapabilities(Model):
    """The client can show forms."""


class ElicitationUrlCapabilities(Model):
    """The client can send its user to a URL."""


class ElicitationCapabilities(Model):
    """How a client can ask its user."""

    form: Tolerant[ElicitationFormCapabilities | None] = None
    url: Tolerant[ElicitationUrlCapabilities | None] = None


class ClientCapabilities(Model):
    """What the client lends and shows."""

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
    """What a prompt may hold besides text and resource links."""

    image: Tolerant[bool] = False
    audio: Tolerant[bool] = False
    embedded_context: Tolerant[bool] = False


class McpCapabilities(Model):
    """The MCP transports that the agent speaks besides stdio."""

    http: Tolerant[bool] = False
    sse: Tolerant[bool] = False
    acp: Unstable[Tolerant[bool]] = False


class SessionListCapabilities(Model):
    """`session/list` is there."""


class SessionDeleteCapabilities(Model):
    """`session/delete` is there."""


class SessionAdditionalDirectoriesCapabilities(Model):
    """Sessions may have more folders than `cwd`."""


class SessionResumeCapabilities(Model):
    """`session/resume` is there."""


class SessionCloseCapabilities(Model):
    """`session/close` is there."""


@unstable
class SessionForkCapabilities(Model):
    """`session/fork` is there."""


@unstable
class SessionArchiveCapabilities(Model):
    """`session/archive` and `session/unarchive` are there."""


@unstable
class SessionStatusCapabilities(Model):
    """`session/status` is there."""


@unstable
class SessionTitleCapabilities(Model):
    """`session/set_title` is there."""


@unstable
class SessionSystemPromptOverrideCapabilities(Model):
    """The client may put its own system prompt in the place of the agent's."""


@unstable
class SessionSystemPromptModeCapabilities(Model):
    """The modes of system prompt besides appending."""

    override: Tolerant[SessionSystemPromptOverrideCapabilities | None] = None


@unstable
class SessionSystemPromptCapabilities(Model):
    """The client may add to the system prompt."""

    mode: Tolerant[SessionSystemPromptModeCapabilities | None] = None


class SessionCapabilities(Model):
    """What can be done with sessions besides starting them."""

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
    """The agent lets the client choose its providers."""


class AgentCapabilities(Model):
    """What the agent offers."""

    load_session: Tolerant[bool] = False
    prompt_capabilities: Tolerant[PromptCapabilities] = PromptCapabilities()
    mcp_capabilities: Tolerant[McpCapabilities] = McpCapabilities()
    session_capabilities: Tolerant[SessionCapabilities] = SessionCapabilities()
    auth: Tolerant[AgentAuthCapabilities] = AgentAuthCapabilities()
    providers: Unstable[Tolerant[ProvidersCapabilities | None]] = None
    nes: Unstable[Tolerant[NesCapabilities | None]] = None
    position_encoding: Unstable[Tolerant[PositionEncodingKind | None]] = None


class InitializeResponse(Model):
    """The version that both will speak, and what the agent offers."""

    protocol_version: ProtocolVersion
    agent_capabilities: Tolerant[AgentCapabilities] = AgentCapabilities()
    auth_methods: Tolerant[ValidItems[AuthMethod]] = []
    agent_info: Tolerant[Implementation | None] = None


class InitializeRequest(Request[InitializeResponse], method="initialize"):
    """The newest version that the client speaks, and what it lends."""

    protocol_version: ProtocolVersion
    client_capabilities: Tolerant[ClientCapabilities] = ClientCapabilities()
    client_info: Tolerant[Implementation | None] = None
