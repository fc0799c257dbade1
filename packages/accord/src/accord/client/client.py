"""`Client`: what you lend to agents, and your handlers for what they send. Nothing in it is live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from accord import __version__
from accord.arguments import check_sequence, check_text, wrong_type
from accord.client.definition import ClientDefinition
from accord.engine.handlers import MessageT, RawHandlerT, Registrar
from accord.engine.interceptors import Interception
from accord.schema import v1
from accord.services.elicitation.elicitation import Elicitation, Fill
from accord.services.files.files import Files
from accord.services.permissions.permissions import Permissions
from accord.services.permissions.question import Ask, allow_all, refuse
from accord.services.service import Service
from accord.services.terminals.terminals import Terminals


class Client:
    """What you lend to agents, and your handlers for what they send; one client may serve many connections.

        async def ask(question: accord.PermissionQuestion) -> bool:
            return input(f"{question.tool_call.title}? [y/n] ") == "y"

        client = accord.Client(files=True, permissions=ask)

    By default it lends nothing and refuses permission for everything. `files` and `terminals` are True for our services
    with their defaults, or a service: `Files(...)`, `Terminals(...)`, or your own. `permissions` is True to allow
    everything, a function that returns an option, True or False, or a service. `elicitation` is a function that fills
    in forms, or a service. `services` are any others. What the services declare is told to agents; `capabilities` may
    change it. `name`, `version` and `title` are what agents are told about the client; the version of the default name
    is Accord's. `keep_unknown` is for a program
    that passes on what agents send: it keeps the members that our types do not know, see docs/engine.md.
    `lend_as_mcp` offers `files` and `terminals` to agents of version 2 too, as tools of an MCP server (extra `mcp`).
    """

    def __init__(
        self,
        name: str = "accord",
        *,
        version: str | None = None,
        title: str | None = None,
        files: bool | Service = False,
        terminals: bool | Service = False,
        permissions: bool | Ask | Service = False,
        elicitation: Fill | Service | None = None,
        services: Sequence[Service] = (),
        capabilities: Callable[[v1.ClientCapabilities], v1.ClientCapabilities] | None = None,
        keep_unknown: bool = False,
        lend_as_mcp: bool = False,
    ) -> None:
        check_text("Client(name)", name)
        check_sequence("Client(services=...)", "services", services)
        lent: list[Service] = [
            *([Files()] if files is True else _given("files", files)),
            *([Terminals()] if terminals is True else _given("terminals", terminals)),
            *([] if elicitation is None else [_elicitation(elicitation)]),
            _permissions(permissions),
            *(_service("Client(services=...)", it) for it in services),
        ]
        self._definition = ClientDefinition(
            v1.Implementation(name, version or (__version__ if name == "accord" else "0"), title),
            lent,
            capabilities,
            keep_unknown=keep_unknown,
            lend_as_mcp=lend_as_mcp,
        )

    def __repr__(self) -> str:
        lent = [type(service).__name__ for service in self._definition.services]
        return f"Client({self.info.name!r}, lends={lent})"

    @property
    def info(self) -> v1.Implementation:
        """The client's name, version and title, as agents are told them."""
        return self._definition.info

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message, of the protocol or of your own; the handler replaces that of a service."""
        return self._definition.handlers.on(message)

    def before(self, message: type[MessageT]) -> Interception[MessageT]:
        """Call a function with this message before what handles it: a service, or what you registered with `on`.

        The function takes the message, and a `Context` if it wants one. It returns None to let the message go on, a
        message of the same class to let that go on in its place, or the answer, which ends the way; it may raise
        `RequestError`. For a notification, True ends the way. What the decorator is called on has a `remove`.
        """
        return self._definition.handlers.before(message)

    def on_request(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle the request of this method; params and result are plain JSON values."""
        return self._definition.handlers.on_request(method)

    def on_notification(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle the notification of this method; params are plain JSON values."""
        return self._definition.handlers.on_notification(method)


def definition_of(client: Client) -> ClientDefinition:
    """What a client consists of, for its connections; raises TypeError for any other object."""
    if not isinstance(cast("object", client), Client):
        raise wrong_type("connect(client)", "a Client", client)
    return client._definition  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _given(name: str, service: bool | Service) -> list[Service]:
    return [] if isinstance(service, bool) else [_service(f"Client({name}=...)", service, "True, False or ")]


def _service(call: str, service: Any, also: str = "") -> Service:
    """A service; raises TypeError for any other object, and for a class of services without its parentheses."""
    if not isinstance(service, Service):
        hint = "write it with parentheses" if isinstance(service, type) else ""
        raise wrong_type(call, f"{also}a Service", cast("object", service), hint)
    return service


def _elicitation(elicitation: Fill | Service) -> Service:
    if isinstance(elicitation, Service):
        return elicitation
    if isinstance(elicitation, type) or not callable(elicitation):
        raise wrong_type("Client(elicitation=...)", "a function that fills in forms, or a Service", elicitation)
    return Elicitation(elicitation)


def _permissions(permissions: bool | Ask | Service) -> Service:
    if isinstance(permissions, Service):
        return permissions
    if isinstance(permissions, bool):
        return Permissions(allow_all if permissions else refuse)
    if isinstance(permissions, type) or not callable(permissions):
        hint = "permissions=True allows everything" if isinstance(cast("object", permissions), str) else ""
        raise wrong_type("Client(permissions=...)", "True, False, a function or a Service", permissions, hint)
    return Permissions(permissions)
