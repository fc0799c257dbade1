"""What an agent declares: it follows from what its author registered. Pure."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from typing import Any

import msgspec

from accord.engine.handlers import Handlers
from accord.mcp.offered import mcp_capabilities
from accord.schema import v1

_YES: dict[Any, Any] = {
    v1.LoadSessionRequest: True,
    v1.ListSessionsRequest: v1.SessionListCapabilities(),
    v1.ResumeSessionRequest: v1.SessionResumeCapabilities(),
    v1.CloseSessionRequest: v1.SessionCloseCapabilities(),
    v1.DeleteSessionRequest: v1.SessionDeleteCapabilities(),
    v1.ForkSessionRequest: v1.SessionForkCapabilities(),
    v1.ArchiveSessionRequest: v1.SessionArchiveCapabilities(),
    v1.SessionStatusRequest: v1.SessionStatusCapabilities(),
    v1.SetSessionTitleRequest: v1.SessionTitleCapabilities(),
    v1.LogoutRequest: v1.LogoutCapabilities(),
    v1.AuthStatusRequest: v1.AuthStatusCapabilities(),
    v1.ListProvidersRequest: v1.ProvidersCapabilities(),
}
"""What declares that a message is handled; where it goes, the message's `needs` says."""

LASTING = {
    v1.LoadSessionRequest,
    v1.ListSessionsRequest,
    v1.ResumeSessionRequest,
    v1.CloseSessionRequest,
    v1.DeleteSessionRequest,
    v1.ForkSessionRequest,  # only proposed; declaring it is how it is negotiated
}
"""What every agent handles, for every agent has a store."""


PROPOSED = {
    v1.ArchiveSessionRequest,
    v1.SessionStatusRequest,
    v1.SetSessionTitleRequest,
    v1.AuthStatusRequest,
}
"""What an agent handles as well where its author lets out what is only proposed."""

_OVERRIDE = v1.SessionSystemPromptModeCapabilities(v1.SessionSystemPromptOverrideCapabilities())


def capabilities(
    prompt: v1.PromptCapabilities,
    handlers: Handlers,
    *,
    can_log_out: bool,
    unstable: bool = False,
    tells_auth_status: bool = False,
    has_providers: bool = False,
    system_prompts: Collection[str] = (),
) -> v1.AgentCapabilities:
    """The capabilities of an agent that takes this in prompts, and has these handlers of its own.

    What is only proposed is declared where the author registered something for it, or with `unstable`.
    """
    handled: set[Any] = {message for message in _YES if handlers.handles(message)} | LASTING
    handled |= PROPOSED if unstable else set()
    handled |= {v1.LogoutRequest} if can_log_out else set()
    handled |= {v1.AuthStatusRequest} if tells_auth_status else set()
    handled |= {v1.ListProvidersRequest} if has_providers else set()
    bare = v1.AgentCapabilities(
        prompt_capabilities=prompt,
        mcp_capabilities=mcp_capabilities(),
        session_capabilities=v1.SessionCapabilities(
            additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
            system_prompt=_system_prompt(system_prompts),
        ),
    )
    return reduce(lambda declared, message: _with(declared, message.__needs__, _YES[message]), handled, bare)


def _system_prompt(modes: Collection[str]) -> v1.SessionSystemPromptCapabilities | None:
    if not modes:
        return None
    return v1.SessionSystemPromptCapabilities(_OVERRIDE if "override" in modes else None)


def _with(declared: Any, path: str, value: Any) -> Any:
    """These capabilities, and this one at its place."""
    step, _, rest = path.partition(".")
    return msgspec.structs.replace(declared, **{step: _with(getattr(declared, step), rest, value) if rest else value})
