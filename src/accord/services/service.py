"""What every lent service has in common, and what it is told of the session that asks.

A service is made once by whoever lends it and may serve many connections. For each connection it registers handlers,
which find the asking session by its id; whatever it keeps for a session it keeps by that object, as two agents may both
call a session `1`. It knows neither the client nor the agent: an agent that helps itself uses it the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from accord.engine.handlers import Handlers
from accord.schema import v1
from accord.services.roots import Roots
from accord.state import ToolCallState


class ServedSession(Protocol):
    """The session that asks, as a service sees it. It is the same object for as long as the session lives."""

    @property
    def id(self) -> v1.SessionId: ...
    @property
    def agent(self) -> str:
        """Who asks, by a name that is the same next time: what it calls itself, or its command."""
        ...

    @property
    def program(self) -> str:
        """Who asks, by what it is and not by what it calls itself: its program, its URL's origin, or its module."""
        ...

    @property
    def cwd(self) -> Path: ...
    @property
    def roots(self) -> Roots:
        """`cwd` and the additional directories: where its files and commands have to stay."""
        ...

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """What its updates have made of a tool call so far."""
        ...

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """Make what a permission request says of a tool call part of it."""
        ...


SessionOf: TypeAlias = Callable[[v1.SessionId], ServedSession]
"""Finds a session of one connection; raises RequestError for one that nobody knows."""


class Service(ABC):
    """Something lent to agents: what it declares, what it handles, and when it lets go.

    One's own service is a subclass:

        class Clock(accord.Service):
            def declare(self, capabilities):
                return capabilities

            def register(self, handlers, session_of):
                @handlers.on(WhatTimeIsIt)
                def answer(request):
                    return Time(...)
    """

    @abstractmethod
    def declare(self, capabilities: v1.ClientCapabilities) -> v1.ClientCapabilities:
        """These capabilities, with those of this service."""

    @abstractmethod
    def register(self, handlers: Handlers, session_of: SessionOf) -> None:
        """Handle this service's requests of one connection."""

    def turn_cancelled(self, session: ServedSession) -> None:  # noqa: B027
        """The user has cancelled the turn: whatever waits for an answer of theirs is answered `cancelled`."""

    async def release(self, session: ServedSession) -> None:  # noqa: B027
        """The session has ended, or its connection has: let go of all that was kept for it."""
