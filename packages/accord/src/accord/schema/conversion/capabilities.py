"""Capabilities: booleans in version 1, marker objects in version 2. One that the target version lacks is dropped."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from accord.schema import v1, v2
from accord.schema.base import Shape
from accord.schema.conversion.rows import DOWN, UP


def _marker(cls: type[Shape], offered: bool) -> Any:
    return cls() if offered else None


def _offered(marker: Any) -> bool:
    if marker is not None and marker.meta is not None:
        DOWN.refuse(f"{type(marker).__name__}._meta", "the capability is a boolean there, which has no _meta")
    return marker is not None


def _refuse_meta(marker: Any) -> None:
    if marker is not None and marker.meta is not None:
        UP.refuse(f"{type(marker).__name__}._meta", "every agent has the capability there, without a marker")


def _unless_empty(capabilities: Any) -> Any:
    return None if capabilities == type(capabilities)() else capabilities


@UP.step(v1.PromptCapabilities)
def _prompt_capabilities_up(value: v1.PromptCapabilities) -> v2.PromptCapabilities:
    return v2.PromptCapabilities(
        image=_marker(v2.PromptImageCapabilities, value.image),
        audio=_marker(v2.PromptAudioCapabilities, value.audio),
        embedded_context=_marker(v2.PromptEmbeddedContextCapabilities, value.embedded_context),
        meta=value.meta,
    )


@DOWN.step(v2.PromptCapabilities)
def _prompt_capabilities_down(value: v2.PromptCapabilities) -> v1.PromptCapabilities:
    return v1.PromptCapabilities(
        image=_offered(value.image),
        audio=_offered(value.audio),
        embedded_context=_offered(value.embedded_context),
        meta=value.meta,
    )


@UP.step(v1.McpCapabilities)
def _mcp_capabilities_up(value: v1.McpCapabilities) -> v2.McpCapabilities:
    return v2.McpCapabilities(
        stdio=v2.McpStdioCapabilities(),  # in version 1 every agent can start MCP servers
        http=_marker(v2.McpHttpCapabilities, value.http),
        acp=_marker(v2.McpAcpCapabilities, value.acp),
        meta=value.meta,
    )


@DOWN.step(v2.McpCapabilities)
def _mcp_capabilities_down(value: v2.McpCapabilities) -> v1.McpCapabilities:
    if not _offered(value.stdio):
        DOWN.refuse("McpCapabilities without stdio", "every agent must be able to start MCP servers")
    return v1.McpCapabilities(http=_offered(value.http), acp=_offered(value.acp), meta=value.meta)


@UP.step(v1.AuthCapabilities)
def _client_auth_up(value: v1.AuthCapabilities) -> v2.ClientAuthCapabilities:
    return v2.ClientAuthCapabilities(terminal=_marker(v2.TerminalAuthCapabilities, value.terminal), meta=value.meta)


@DOWN.step(v2.ClientAuthCapabilities)
def _client_auth_down(value: v2.ClientAuthCapabilities) -> v1.AuthCapabilities:
    return v1.AuthCapabilities(terminal=_offered(value.terminal), meta=value.meta)


@UP.step(v1.AgentAuthCapabilities)
def _agent_auth_up(value: v1.AgentAuthCapabilities) -> v2.AgentAuthCapabilities:
    _refuse_meta(value.logout)
    return v2.AgentAuthCapabilities(status=value.status, meta=value.meta)


@UP.step(v1.ClientCapabilities)
def _client_capabilities_up(value: v1.ClientCapabilities) -> v2.ClientCapabilities:
    return v2.ClientCapabilities(auth=_unless_empty(UP.one(value.auth)), elicitation=value.elicitation, meta=value.meta)


@DOWN.step(v2.ClientCapabilities)
def _client_capabilities_down(value: v2.ClientCapabilities) -> v1.ClientCapabilities:
    shown = v1.ClientSessionCapabilities(  # every client of version 2 can display these
        compaction=v1.CompactionCapabilities(),
        config_options=v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities()),
        notices=v1.NoticeCapabilities(),
    )
    auth = DOWN.one(value.auth) or v1.AuthCapabilities()
    return v1.ClientCapabilities(auth=auth, elicitation=value.elicitation, session=shown, meta=value.meta)


@UP.step(v1.AgentCapabilities)
def _agent_capabilities_up(value: v1.AgentCapabilities) -> v2.AgentCapabilities:
    sessions = value.session_capabilities
    always = {"list": sessions.list, "resume": sessions.resume, "close": sessions.close}
    missing = [name for name, marker in {"load": value.load_session or None, **always}.items() if marker is None]
    if missing:
        UP.refuse("AgentCapabilities", f"every agent with sessions must offer {', '.join(missing)}")
    for marker in always.values():
        _refuse_meta(marker)
    session = UP.carry(
        sessions,
        v2.SessionCapabilities,
        used=tuple(always),
        prompt=_unless_empty(UP.one(value.prompt_capabilities)),
        mcp=UP.one(value.mcp_capabilities),
    )
    auth = _unless_empty(UP.one(value.auth))
    return v2.AgentCapabilities(session=session, auth=auth, providers=value.providers, meta=value.meta)


@DOWN.step(v2.AgentCapabilities)
def _agent_capabilities_down(value: v2.AgentCapabilities) -> v1.AgentCapabilities:
    if value.session is None:
        DOWN.refuse("AgentCapabilities without session", "every agent must have sessions")
    sessions = DOWN.carry(
        value.session,
        v1.SessionCapabilities,
        used=("prompt", "mcp"),
        list=v1.SessionListCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
    )
    return v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=DOWN.one(value.session.prompt) or v1.PromptCapabilities(),
        mcp_capabilities=DOWN.one(value.session.mcp or v2.McpCapabilities()),
        session_capabilities=sessions,
        auth=DOWN.one(value.auth) or v1.AgentAuthCapabilities(),
        providers=value.providers,
        meta=value.meta,
    )


# initialize: in version 2 an agent with authentication methods always offers logout


@UP.step(v1.InitializeResponse, v1.InitializeProxyResponse)
def _initialize_response_up(value: v1.InitializeResponse) -> Any:
    if value.auth_methods and value.agent_capabilities.auth.logout is None:
        UP.refuse("InitializeResponse.authMethods", "an agent with authentication methods must offer logout")
    return UP.carry(value, getattr(v2, type(value).__name__))


@DOWN.step(v2.InitializeResponse, v2.InitializeProxyResponse)
def _initialize_response_down(value: v2.InitializeResponse) -> Any:
    capabilities = DOWN.one(value.capabilities)
    if value.auth_methods:
        auth = replace(capabilities.auth, logout=v1.LogoutCapabilities())
        capabilities = replace(capabilities, auth=auth)
    return DOWN.carry(value, getattr(v1, type(value).__name__), agent_capabilities=capabilities)
