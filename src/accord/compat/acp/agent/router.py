"""The router of an agent: its methods, by those of the protocol."""

from __future__ import annotations

from typing import Any

from accord.compat.acp.router import MessageRouter
from accord.compat.calls import AGENT_CALLS

__all__ = ["build_agent_router"]


def build_agent_router(agent: Any, use_unstable_protocol: bool = False) -> MessageRouter:
    """Route the messages of a client to this agent's methods."""
    router = MessageRouter(use_unstable_protocol=use_unstable_protocol)
    router.route_calls(AGENT_CALLS, agent)
    router.route_extensions(agent)
    return router
