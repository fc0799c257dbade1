"""`ClientDefinition`: what a `Client` consists of, as its connections see it. Nothing in it is live."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accord._internal.tasks import adapted
from accord.documents.positions import ENCODINGS
from accord.engine.handlers import Handlers
from accord.schema import v1
from accord.services.service import Service, SessionOf

SHOWN = v1.ClientNesCapabilities(
    v1.NesJumpCapabilities(), v1.NesRenameCapabilities(), v1.NesSearchAndReplaceCapabilities()
)
"""The suggestions that a client of ours shows besides edits: its program gets all of them."""


class ClientDefinition:
    """The client's name, the services that it lends, and its handlers."""

    def __init__(
        self,
        info: v1.Implementation,
        services: Sequence[Service],
        change_capabilities: Callable[[v1.ClientCapabilities], v1.ClientCapabilities] | None,
        *,
        keep_unknown: bool = False,
        lend_as_mcp: bool = False,
    ) -> None:
        self.info = info
        self.services = list(services)
        self.handlers = Handlers(author="@client")
        """The handlers that the caller registered for all connections."""
        self.keep_unknown = keep_unknown
        """Whether what agents send keeps the members that its types do not know."""
        self.lend_as_mcp = lend_as_mcp
        """Whether agents of version 2 get files and terminals as tools of an MCP server."""
        self._change_capabilities = change_capabilities

    def declare(self, *, terminal_login: bool, unstable: bool) -> v1.ClientCapabilities:
        """The capabilities that agents are told: what the services declare, and what every client of ours can show."""
        declared = v1.ClientCapabilities(
            session=v1.ClientSessionCapabilities(
                compaction=v1.CompactionCapabilities(),
                config_options=v1.SessionConfigOptionsCapabilities(v1.BooleanConfigOptionCapabilities()),
                notices=v1.NoticeCapabilities(),
            ),
            auth=v1.AuthCapabilities(terminal_login),
            plan=v1.PlanCapabilities() if unstable else None,
            subagents=v1.SubagentCapabilities() if unstable else None,
            nes=SHOWN if unstable else None,
            position_encodings=list(ENCODINGS) if unstable else [],
            # The older form of `auth.terminal`, which agents in the field read.
            meta={"terminal-auth": True} if terminal_login else None,
        )
        for service in self.services:
            declared = service.declare(declared)
        return declared if self._change_capabilities is None else self._change_capabilities(declared)

    def handlers_for(self, session_of: SessionOf) -> Handlers:
        """The handlers of one connection; those that the caller registered replace those of services."""
        return self._with_own(self._of_services(session_of))

    def handlers_for_v2(self, session_of: SessionOf) -> Handlers:
        """The same for a connection of version 2."""
        from accord.dialects.v1_handlers_on_v2 import handlers_on_v2

        handlers = handlers_on_v2(self._of_services(session_of), "client")
        for service in self.services:
            service.register_v2(handlers, session_of)
        own = self._with_own(Handlers())
        return handlers_on_v2(own, "client").over(handlers)

    def _of_services(self, session_of: SessionOf) -> Handlers:
        handlers = Handlers()
        for service in self.services:
            service.register(handlers, session_of)
        return handlers

    def _with_own(self, handlers: Handlers) -> Handlers:
        own = self.handlers
        handlers.typed.update({key: (message, adapted(handler)) for key, (message, handler) in own.typed.items()})
        handlers.raw.update({key: adapted(handler) for key, handler in own.raw.items()})
        handlers.others = own.others
        handlers.interceptors += own.interceptors
        return handlers
