"""The answer to `initialize` of version 2 in types of version 1. PURE."""

from __future__ import annotations

from typing import Any, TypeVar

from accord.schema import v1, v2
from accord.schema.base import Unknown

CapabilitiesT = TypeVar("CapabilitiesT", v1.PromptCapabilities, v1.McpCapabilities)

# What needs a capability asks for it by the place that it has in version 1, in both versions. So what an agent of
# version 2 declares is read into that shape, and nothing is refused: a capability without a counterpart is left out
# here, and stays readable in `RemoteAgent.capabilities.declared`.
#
# | version 2 | version 1 |
# |---|---|
# | `session` | load, list, resume and close |
# | `session.prompt`, `session.mcp`: objects | booleans |
# | any `authMethods` | `auth.logout` |
# | `methodId` | `id` |


def answer_as_v1(answer: v2.InitializeResponse) -> v1.InitializeResponse:
    """The answer of an agent of version 2 as one of version 1; `protocol_version` stays 2."""
    return v1.InitializeResponse(
        answer.protocol_version,
        capabilities_as_v1(answer),
        [_login(method) for method in answer.auth_methods],
        answer.info,
        meta=answer.meta,
    )


def capabilities_as_v1(answer: v2.InitializeResponse) -> v1.AgentCapabilities:
    """Return the capabilities in an answer of version 2, as those of version 1."""
    declared = answer.capabilities
    sessions = declared.session
    logout = v1.LogoutCapabilities() if answer.auth_methods else None
    auth = v1.AgentAuthCapabilities(logout=logout, status=None if declared.auth is None else declared.auth.status)
    if sessions is None:
        return v1.AgentCapabilities(auth=auth, providers=declared.providers, meta=declared.meta)
    return v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=_offered(sessions.prompt, v1.PromptCapabilities),
        mcp_capabilities=_offered(sessions.mcp, v1.McpCapabilities),
        session_capabilities=_sessions(sessions),
        auth=auth,
        providers=declared.providers,
        meta=declared.meta,
    )


def _offered(declared: Any, capabilities: type[CapabilitiesT]) -> CapabilitiesT:
    """Return whether a capability is present that is an object in version 2 and a boolean in version 1."""
    offers: Any = {name: getattr(declared, name, None) is not None for name in capabilities.__struct_fields__}
    return capabilities(**offers | {"meta": None})


def _sessions(declared: v2.SessionCapabilities) -> v1.SessionCapabilities:
    names = {*v1.SessionCapabilities.__struct_fields__} & {*declared.__struct_fields__} - {"meta"}
    return v1.SessionCapabilities(
        list=v1.SessionListCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
        **{name: getattr(declared, name) for name in names},
    )


def _login(method: v2.AuthMethod) -> Any:
    match method:
        case v2.AuthMethodAgent():
            return v1.AuthMethodAgent(method.method_id, method.name, method.description, meta=method.meta)
        case v2.AuthMethodTerminal():
            # Of several values of one variable, the last one counts, as in a shell.
            env = {variable.name: variable.value for variable in method.env}
            return v1.AuthMethodTerminal(
                method.method_id, method.name, method.description, method.args, env, meta=method.meta
            )
        case Unknown():
            return method
