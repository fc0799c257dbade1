"""The answer to `initialize` of version 2, in the words of version 1. PURE.

What needs a capability asks for it by the place that it has in version 1, in both versions. So what an agent of
version 2 declares is read into that shape, and nothing is refused: a capability without a counterpart is left out here,
and stays readable in `RemoteAgent.capabilities.declared`.

| version 2 | version 1 |
|---|---|
| `session` | load, list, resume and close |
| `session.prompt`, `session.mcp`: objects | booleans |
| any `authMethods` | `auth.logout` |
| `methodId` | `id` |
"""

from __future__ import annotations

from typing import Any

from accord.schema import v1, v2
from accord.schema.base import Unknown


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
    """The capabilities in an answer of version 2, as those of version 1."""
    told = answer.capabilities
    sessions = told.session
    logout = v1.LogoutCapabilities() if answer.auth_methods else None
    auth = v1.AgentAuthCapabilities(logout=logout, status=None if told.auth is None else told.auth.status)
    if sessions is None:
        return v1.AgentCapabilities(auth=auth, providers=told.providers, meta=told.meta)
    return v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=_prompt(sessions.prompt or v2.PromptCapabilities()),
        mcp_capabilities=_mcp(sessions.mcp or v2.McpCapabilities()),
        session_capabilities=_sessions(sessions),
        auth=auth,
        providers=told.providers,
        meta=told.meta,
    )


def _prompt(told: v2.PromptCapabilities) -> v1.PromptCapabilities:
    return v1.PromptCapabilities(
        image=told.image is not None,
        audio=told.audio is not None,
        embedded_context=told.embedded_context is not None,
    )


def _mcp(told: v2.McpCapabilities) -> v1.McpCapabilities:
    return v1.McpCapabilities(http=told.http is not None, acp=told.acp is not None)


def _sessions(told: v2.SessionCapabilities) -> v1.SessionCapabilities:
    return v1.SessionCapabilities(
        list=v1.SessionListCapabilities(),
        delete=told.delete,
        additional_directories=told.additional_directories,
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
        fork=told.fork,
        archive=told.archive,
        status=told.status,
        title=told.title,
        system_prompt=told.system_prompt,
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
