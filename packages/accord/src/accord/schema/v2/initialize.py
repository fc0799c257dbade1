"""The first call of a connection: versions, capabilities, who is who. Proposals: overview, required-session-methods.

Differs from version 1: both sides have `capabilities` and, always, `info`; a capability is there as an object or not at
all; `session` stands for the methods that every agent with sessions has.
"""

from __future__ import annotations

from accord.schema.base import Model, Request, Tolerant, Unstable, ValidItems, unstable
from accord.schema.v1.initialize import (
    ElicitationCapabilities,
    Implementation,
    ProtocolVersion,
    ProvidersCapabilities,
    SessionAdditionalDirectoriesCapabilities,
    SessionArchiveCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionStatusCapabilities,
    SessionSystemPromptCapabilities,
    SessionTitleCapabilities,
)
from accord.schema.v2.auth import AgentAuthCapabilities, AuthMethod, ClientAuthCapabilities


class ClientCapabilities(Model):
    """The optional features that the client shows."""

    auth: Tolerant[ClientAuthCapabilities | None] = None
    elicitation: Tolerant[ElicitationCapabilities | None] = None


# What an agent can do


class PromptImageCapabilities(Model):
    """Declares that a prompt may hold images."""


class PromptAudioCapabilities(Model):
    """Declares that a prompt may hold sounds."""


class PromptEmbeddedContextCapabilities(Model):
    """Declares that a prompt may hold resources with their contents."""


class PromptCapabilities(Model):
    """The content that a prompt may hold besides text and resource links."""

    image: Tolerant[PromptImageCapabilities | None] = None
    audio: Tolerant[PromptAudioCapabilities | None] = None
    embedded_context: Tolerant[PromptEmbeddedContextCapabilities | None] = None


class McpStdioCapabilities(Model):
    """Declares that the agent can start MCP servers as processes."""


class McpHttpCapabilities(Model):
    """Declares that the agent can reach MCP servers over HTTP."""


@unstable
class McpAcpCapabilities(Model):
    """Declares that the agent can reach MCP servers of the client over this connection."""


class McpCapabilities(Model):
    """The MCP transports that the agent supports."""

    stdio: Tolerant[McpStdioCapabilities | None] = None
    http: Tolerant[McpHttpCapabilities | None] = None
    acp: Unstable[Tolerant[McpAcpCapabilities | None]] = None


class SessionCapabilities(Model):
    """The session methods that the agent answers besides the required ones."""

    prompt: Tolerant[PromptCapabilities | None] = None
    mcp: Tolerant[McpCapabilities | None] = None
    delete: Tolerant[SessionDeleteCapabilities | None] = None
    additional_directories: Tolerant[SessionAdditionalDirectoriesCapabilities | None] = None
    fork: Unstable[Tolerant[SessionForkCapabilities | None]] = None
    archive: Unstable[Tolerant[SessionArchiveCapabilities | None]] = None
    status: Unstable[Tolerant[SessionStatusCapabilities | None]] = None
    title: Unstable[Tolerant[SessionTitleCapabilities | None]] = None
    system_prompt: Unstable[Tolerant[SessionSystemPromptCapabilities | None]] = None


class AgentCapabilities(Model):
    """The methods and features that the agent offers."""

    session: Tolerant[SessionCapabilities | None] = None
    auth: Tolerant[AgentAuthCapabilities | None] = None
    providers: Unstable[Tolerant[ProvidersCapabilities | None]] = None


class InitializeResponse(Model):
    """The result of `initialize`: the agreed protocol version, the agent's name, and what it offers."""

    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: Tolerant[AgentCapabilities] = AgentCapabilities()
    auth_methods: Tolerant[ValidItems[AuthMethod]] = []


class InitializeRequest(Request[InitializeResponse], method="initialize", handshake=True):
    """Open the connection: the newest protocol version of the client, its name, and what it shows."""

    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: Tolerant[ClientCapabilities] = ClientCapabilities()
