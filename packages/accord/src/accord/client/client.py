"""`Client`: the services that you lend to agents, and your handlers for their messages. It holds no live state.

Its connections read it through its `ClientDefinition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, cast

import msgspec

from accord import __version__
from accord.engine.handlers import Handlers, Interception, MessageT, RawHandlerT, Registrar
from accord.mistakes import check_sequence, check_text, check_word, wrong_type
from accord.schema import v1
from accord.schema.base import JsonObject, with_unknown_members
from accord.schema.sendable import check_meta
from accord.services.file_service import Files
from accord.services.permission_question import LEVELS, Ask, Level
from accord.services.permission_service import Permissions
from accord.services.service import Service, SessionOf, handlers_of

if TYPE_CHECKING:
    from accord.schema.extension import Extension, Extensions
    from accord.services.elicitation_service import Fill


class Client:
    """The services that you lend to agents, and your handlers for their messages; one client may serve many
    connections.

        def ask(question: accord.PermissionQuestion) -> bool:
            return input(f"{question.tool_call.title}? [y/n] ") == "y"

        client = accord.Client(files=True, permissions=ask)

    By default it lends nothing and allows no more than reading in the session's folders. `files` and `terminals` are
    True for our services with their defaults, or a service: `Files(...)`, `Terminals(...)`, or your own. `permissions`
    is a function that returns an option, True or False; or True to allow everything, a level (`"edit"` allows changes
    in the session's folders as well), or a service: `Permissions(...)`. `elicitation` is a function that fills
    in forms, or a service. `services` are any others. What the services declare is told to agents; `capabilities` may
    change it. `name`, `version` and `title` are what agents are told about the client; the version of the default name
    is Accord's. `keep_unknown` is for a program that passes on what agents send: it keeps the members that our types do
    not know, see docs/engine.md.
    `lend_as_mcp` offers `files` and `terminals` to agents of version 2 too, as tools of an MCP server (extra `mcp`).
    `prompt_suggestions` asks agents for prompts that the user may want to send next: `session.state.suggestions`.
    `skills` lets agents of version 2 list their skills in `session.state.commands`, as `v2.Skill`; a prompt names one
    with `v1.SkillReference(name)`.
    `extensions` are additions to the protocol that agents are told of: classes of `Extension`, or the names of
    installed ones; or a mapping from each to what it declares.
    """

    def __init__(
        self,
        name: str = "accord",
        *,
        version: str | None = None,
        title: str | None = None,
        files: bool | Service = False,
        terminals: bool | Service = False,
        permissions: bool | Level | Ask | Service = False,
        elicitation: Fill | Service | None = None,
        services: Sequence[Service] = (),
        capabilities: Callable[[v1.ClientCapabilities], v1.ClientCapabilities] | None = None,
        keep_unknown: bool = False,
        lend_as_mcp: bool = False,
        prompt_suggestions: bool = False,
        skills: bool = False,
        extensions: Iterable[type[Extension[Any]] | str] | Extensions = (),
        meta: JsonObject | None = None,
    ) -> None:
        check_text("Client(name)", name)
        check_meta("Client(meta=...)", meta)
        check_sequence("Client(services=...)", "services", services)
        lent: list[Service] = [
            *([Files()] if files is True else _as_services("files", files)),
            *([_terminals()] if terminals is True else _as_services("terminals", terminals)),
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
            prompt_suggestions=prompt_suggestions,
            skills=skills,
            meta=meta,
        )
        if extensions:
            from accord.schema.extension import chosen_extensions  # few clients have extensions

            self._definition.extensions = chosen_extensions("Client(extensions=...)", extensions)
            self._definition.handlers.extensions = self._definition.extensions

    def __repr__(self) -> str:
        lent = [type(service).__name__ for service in self._definition.services]
        return f"Client({self.info.name!r}, lends={lent})"

    @property
    def info(self) -> v1.Implementation:
        """The client's name, version and title, as agents get them."""
        return self._definition.info

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message, of the protocol or of your own; the handler replaces that of a service."""
        return self._definition.handlers.on(message)

    def before(self, message: type[MessageT]) -> Interception[MessageT]:
        """Call a function with this message before its handler: a service, or yours registered with `on`.

        The function takes the message, and a `Context` if it has a second parameter. It returns None to pass the
        message on, a message of the same class to pass that on instead, or the answer, which ends the chain; it may
        raise `RequestError`. For a notification, True ends the chain. The decorated function gets a `remove`.
        """
        return self._definition.handlers.before(message)

    def on_request(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle the request of this method; params and result are plain JSON values."""
        return self._definition.handlers.on_request(method)

    def on_notification(self, method: str) -> Callable[[RawHandlerT], RawHandlerT]:
        """Handle the notification of this method; params are plain JSON values."""
        return self._definition.handlers.on_notification(method)


def definition_of(client: Client) -> ClientDefinition:
    """Return the definition of a client, for its connections; raises TypeError for any other object."""
    if not isinstance(cast("object", client), Client):
        raise wrong_type("connect(client)", "a Client", client)
    return client._definition  # pyright: ignore[reportPrivateUsage]


def _as_services(name: str, service: bool | Service) -> list[Service]:
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
    from accord.services.elicitation_service import Elicitation  # few clients fill in forms

    return Elicitation(elicitation)


def _terminals() -> Service:
    from accord.services.terminal_service import Terminals  # loads what starts processes

    return Terminals()


def _permissions(permissions: bool | Level | Ask | Service) -> Service:
    if isinstance(permissions, Service):
        return permissions
    if isinstance(permissions, bool):
        return Permissions(level="auto" if permissions else "ask")
    if isinstance(permissions, str):
        check_word("permissions", permissions, LEVELS)
        return Permissions(level=cast("Level", permissions))
    if isinstance(permissions, type) or not callable(permissions):
        raise wrong_type("Client(permissions=...)", "True, False, a level, a function or a Service", permissions)
    return Permissions(permissions)


SHOWN = v1.ClientNesCapabilities(
    v1.NesJumpCapabilities(), v1.NesRenameCapabilities(), v1.NesSearchAndReplaceCapabilities()
)
"""The suggestions that our client shows besides edits: its program gets all of them."""


OFFERED = v1.PromptSuggestionsCapabilities(
    v1.PromptSuggestionsImageCapabilities(),
    v1.PromptSuggestionsAudioCapabilities(),
    v1.PromptSuggestionsEmbeddedContextCapabilities(),
)
"""The content that suggested prompts may have: the client's program gets it whole, and can send it unchanged."""


@dataclass(eq=False)
class ClientDefinition:
    """The client's name, the services that it lends, and its handlers."""

    info: v1.Implementation
    services: Sequence[Service]
    _change_capabilities: Callable[[v1.ClientCapabilities], v1.ClientCapabilities] | None
    _: KW_ONLY
    keep_unknown: bool = False
    """Whether what agents send keeps the members that its types do not know."""
    lend_as_mcp: bool = False
    """Whether agents of version 2 get files and terminals as tools of an MCP server."""
    prompt_suggestions: bool = False
    """Whether agents are asked to suggest prompts."""
    skills: bool = False
    """Whether agents of version 2 list their skills."""
    meta: JsonObject | None = None
    """The `_meta` of `initialize`."""
    extensions: Extensions = field(default_factory=dict[Any, Any])
    """The extensions of the protocol that are declared to agents."""
    handlers: Handlers = field(default_factory=lambda: Handlers(author="@client"))
    """The handlers that the caller registered for all connections."""

    def declare(self, *, terminal_login: bool, unstable: bool) -> v1.ClientCapabilities:
        """Return the declared capabilities: those of the services, and those of every client of ours."""
        declared = v1.ClientCapabilities(
            session=v1.ClientSessionCapabilities(
                compaction=v1.CompactionCapabilities(),
                config_options=v1.SessionConfigOptionsCapabilities(v1.BooleanConfigOptionCapabilities()),
                notices=v1.NoticeCapabilities(),
                prompt_suggestions=OFFERED if self.prompt_suggestions else None,
                cursors=v1.SessionCursorsCapabilities() if unstable else None,
            ),
            auth=v1.AuthCapabilities(terminal_login),
            plan=v1.PlanCapabilities(),
            subagents=v1.SubagentCapabilities(),
            nes=SHOWN if unstable else None,
            position_encodings=_encodings() if unstable else [],
            # The older form of `auth.terminal`, which agents in the field read.
            meta={"terminal-auth": True} if terminal_login else None,
        )
        if self.skills and declared.session is not None:
            session = with_unknown_members(declared.session, {"commands": {"skill": {}}})
            declared = msgspec.structs.replace(declared, session=session)
        for service in self.services:
            declared = service.declare(declared)
        if self.extensions:
            from accord.schema.extension import declarations, merged_meta

            declared = msgspec.structs.replace(declared, meta=merged_meta(declared.meta, declarations(self.extensions)))
        return declared if self._change_capabilities is None else self._change_capabilities(declared)

    def handlers_for(self, session_of: SessionOf) -> Handlers:
        """Return the handlers of one connection; those that the caller registered replace those of services."""
        return self.handlers.in_threads(of_client=True).over(self._of_services(session_of))

    def handlers_for_v2(self, session_of: SessionOf) -> Handlers:
        """The same for a connection of version 2."""
        from accord.dialects.v1_handlers_on_v2 import handlers_on_v2

        handlers = handlers_on_v2(self._of_services(session_of), "client")
        for service in self.services:
            handlers = handlers_of(service, session_of, version=2).over(handlers)
        return handlers_on_v2(self.handlers.in_threads(of_client=True), "client").over(handlers)

    def _of_services(self, session_of: SessionOf) -> Handlers:
        handlers = Handlers()
        for service in self.services:
            handlers = handlers_of(service, session_of).over(handlers)
        return handlers


def _encodings() -> list[str]:
    from accord.documents.text_document import ENCODINGS  # few clients edit documents with their agent

    return list(ENCODINGS)
