"""The capabilities that the other side declared, and which message needs which of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from accord.errors import CapabilityMissing
from accord.installation import mcp_is_installed
from accord.schema import v1
from accord.schema.base import JsonObject, Mark, Notification, Request, Shape, unknown_members
from accord.schema.type_tree import Tagged, fields_of

if TYPE_CHECKING:
    from accord.schema.extension import Extension

Path = str
"""A capability, by its place in the declared object: `session_capabilities.fork`."""
Needed: TypeAlias = "Path | type[Extension[Any]]"
OfferT = TypeVar("OfferT")

WATCH = "accord.dev/watch"
"""The key of `_meta` with which a server declares that sessions can be watched, and a client asks to watch one."""
CURSORS = "accord.dev/cursors"
"""The key of `_meta` with which a client of version 2 asks for session cursors, for which it has no capability there.

Every client of version 2 may get them, but two updates for each turn should cost only those who use them. The protocol
reserves all members of capabilities but `_meta` (Extensibility), so the `session.cursors` of version 1 is not used.
"""

FIELDS_NEED: dict[tuple[str, str], Path] = {
    ("session/new", "system_prompt"): "session_capabilities.system_prompt",
    ("session/load", "system_prompt"): "session_capabilities.system_prompt",
    ("session/resume", "system_prompt"): "session_capabilities.system_prompt",
    ("session/fork", "system_prompt"): "session_capabilities.system_prompt",
    ("session/list", "archived"): "session_capabilities.archive",
    ("session/new", "config_options"): "session_capabilities.options",
    ("session/load", "config_options"): "session_capabilities.options",
    ("session/resume", "config_options"): "session_capabilities.options",
    ("session/fork", "config_options"): "session_capabilities.options",
    ("session/fork", "cursor_id"): "session_capabilities.fork",
}
"""The capabilities that fields need, by method and field. The need of a whole message is in its class."""


def capability_for(request: type[Request[Any]]) -> Needed | None:
    """Return the capability that a client needs for this request; later ones about a terminal follow one that
    needs it.
    """
    needed: Needed | None = request.__needs__
    return "terminal" if needed is None and request.__method__.startswith("terminal/") else needed


def mcp_capabilities() -> v1.McpCapabilities:
    """The MCP capabilities that an agent can declare: all transports of the official package, if it is installed."""
    is_usable = mcp_is_installed()
    return v1.McpCapabilities(http=is_usable, sse=is_usable, acp=is_usable)


def updates_that_need(stream: type[Notification]) -> dict[type, Path]:
    """Return the kinds of update in a stream that the client must have enabled, each with its capability."""
    shapes = (cls for cls in updates_of(stream) if issubclass(cls, Shape))
    return {cls: cls.__needs__ for cls in shapes if isinstance(cls.__needs__, str)}


def updates_of(stream: Any) -> frozenset[type]:
    """The kinds of update in a stream."""
    updates = next((field.node for field in fields_of(stream) if field.name == "update"), None)
    return frozenset(cls for _, cls in updates.variants) if isinstance(updates, Tagged) else frozenset()


def declared_in(handshake: Any) -> Any:
    """Return the capabilities that a message of the handshake declares, in either version; None if it has none."""
    for name in ("client_capabilities", "agent_capabilities", "capabilities"):
        if (declared := getattr(handshake, name, None)) is not None:
            return declared
    return None


class Capabilities:
    """The capabilities that the other side declared.

    >>> Capabilities(v1.AgentCapabilities(load_session=True)).has("load_session")
    True
    """

    __slots__ = ("_handshake_meta", "_known", "_view", "declared")

    def __init__(
        self,
        declared: v1.AgentCapabilities | v1.ClientCapabilities | Any = None,
        view: v1.AgentCapabilities | v1.ClientCapabilities | None = None,
        handshake_meta: JsonObject | None = None,
    ) -> None:
        self.declared = declared
        """The other side's declaration in `initialize`; None before that, when it counts as having no capability."""
        self._view = declared if view is None else view
        """The same in types of version 1, in which all questions are answered."""
        self._handshake_meta = handshake_meta
        self._known: dict[Needed, bool] = {}

    def extension(self, extension: type[Extension[OfferT]]) -> OfferT | None:
        """Return the other side's declaration of this extension; None if there is none."""
        meta = getattr(self.declared, "meta", None)
        return extension.declared_in({**(self._handshake_meta or {}), **(meta or {})})

    def has(self, path: Needed) -> bool:
        """Whether this capability was declared, by its place in the declared object: `fs.read_text_file`.

        A member that the protocol does not have is named as on the wire: `example.com/colours`. An `Extension` is named
        by its class.
        """
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._look_up(path)
        return known

    def _look_up(self, path: Needed) -> bool:
        if not isinstance(path, str):
            return self.extension(path) is not None
        found = (_at(path, self._view), None if self.declared is self._view else _at(path, self.declared))
        # A capability is a boolean, or an object whose presence means yes.
        return any(value is not None and value is not False for value in found)

    def allow(self, value: object) -> bool:
        """Whether this message or update may be sent: the capability that its class needs was declared."""
        needed = getattr(value, "__needs__", None)
        return needed is None or self.has(needed)

    def require(self, path: Needed, action: str) -> None:
        """Raises CapabilityMissing unless this capability was declared; `action` names what needs it."""
        if not self.has(path):
            raise CapabilityMissing(path if isinstance(path, str) else path.place(), action)

    def require_for(self, value: object, action: str) -> None:
        """Raises CapabilityMissing unless this message or update may be sent; `action` names what needs it."""
        if (needed := getattr(value, "__needs__", None)) is not None:
            self.require(needed, action)


def _at(path: Path, value: Any) -> Any:
    """Return the value at this place, which may be a member that our types do not know, by its name on the wire."""
    while path:
        members = cast("dict[str, Any]", value) if isinstance(value, dict) else unknown_members(value)
        name = next((name for name in members if path == name or path.startswith(f"{name}.")), None)
        if name is not None:  # it may have dots
            value, path = members[name], path[len(name) + 1 :]
        else:
            step, _, path = path.partition(".")
            value = None if isinstance(value, dict) else getattr(value, step, None)
    return value


class CapabilityGuard:
    """The capabilities that messages of one class need before they may be sent."""

    __slots__ = ("_fields", "_method", "_needs", "_unstable", "updates")

    def __init__(self, cls: type[Request[Any] | Notification]) -> None:
        self._method = cls.__method__
        self._needs = cls.__needs__
        stream = cls if issubclass(cls, Notification) and cls.__stream__ else None
        self.updates = None if stream is None else updates_that_need(stream) or None
        """The kinds of update that need something; None for messages without updates."""
        self._unstable = cls.__unstable__ and self._needs is None
        self._fields = [
            (field.name, field.default, FIELDS_NEED.get((self._method, field.name)), Mark.UNSTABLE in field.marks)
            for field in fields_of(cast("Any", cls))
            if Mark.UNSTABLE in field.marks or (self._method, field.name) in FIELDS_NEED
        ]

    @property
    def is_open(self) -> bool:
        """Whether messages of this class need no capability."""
        return self._needs is None and self.updates is None and not self._unstable and not self._fields

    @property
    def looks_at_fields(self) -> bool:
        """Whether the fields of a message decide if it may be sent, apart from the kind of its update."""
        return self._unstable or bool(self._fields)

    def check(self, message: Any, capabilities: Capabilities, *, unstable: bool) -> None:
        """Raises CapabilityMissing unless this message may be sent."""
        if self.updates is not None:
            if message.update.__class__ in self.updates:
                capabilities.require(self.updates[message.update.__class__], f"{message.update.__class__.__name__}")
            return
        if self._needs is not None:
            capabilities.require(self._needs, self._method)
        if self._unstable and not unstable:
            raise CapabilityMissing("unstable=True", self._method)
        for name, default, needed, proposed in self._fields:
            if unstable and proposed:
                continue
            if getattr(message, name) != (default() if default is not None else None):
                capabilities.require(needed or "unstable=True", f"{name} in {self._method}")


def check_declared(place: str, message: type[Any], extensions: Iterable[type]) -> None:
    """Raise ValueError for a handler of a message whose extension this side does not declare."""
    needed = getattr(message, "__needs__", None)
    if isinstance(needed, type) and needed not in extensions:
        raise ValueError(
            f"{place}: {message.__name__} belongs to the extension {needed.__name__}, which is not declared; "
            f"write extensions=[{needed.__name__}]"
        )


class AgentOffers(Capabilities):
    """The capabilities that an agent declared, each as an attribute.

    >>> offers = AgentOffers(v1.AgentCapabilities(load_session=True))
    >>> offers.prompt.image, offers.sessions.load, offers.sessions.fork
    (False, True, False)
    """

    __slots__ = ()

    @property
    def _agent(self) -> v1.AgentCapabilities:
        return self._view if isinstance(self._view, v1.AgentCapabilities) else v1.AgentCapabilities()

    @property
    def prompt(self) -> v1.PromptCapabilities:
        """The kinds of content that a prompt may contain: `image`, `audio`, `embedded_context`."""
        return self._agent.prompt_capabilities

    @property
    def mcp(self) -> v1.McpCapabilities:
        """The kinds of MCP servers that the agent reaches besides those it starts: `http`, `sse`, `acp`."""
        return self._agent.mcp_capabilities

    @property
    def sessions(self) -> SessionOffers:
        """The operations on sessions that the agent supports."""
        return SessionOffers(self)

    @property
    def logout(self) -> bool:
        """Whether the user can log out."""
        return self.has("auth.logout")

    @property
    def auth_status(self) -> bool:
        """Whether the agent reports if the user is logged in."""
        return self.has("auth.status")

    @property
    def providers(self) -> bool:
        """Whether the client may choose the providers of the agent's models."""
        return self.has("providers")


class SessionOffers:
    """The operations on sessions that an agent supports."""

    __slots__ = ("_offers",)

    def __init__(self, offers: Capabilities) -> None:
        self._offers = offers

    @property
    def load(self) -> bool:
        """Whether a session can be loaded: resumed with a replay of its past."""
        return self._offers.has("load_session")

    @property
    def resume(self) -> bool:
        """Whether a session can be resumed without a replay."""
        return self._offers.has("session_capabilities.resume")

    @property
    def list(self) -> bool:
        """Whether sessions can be listed."""
        return self._offers.has("session_capabilities.list")

    @property
    def close(self) -> bool:
        """Whether a session can be closed."""
        return self._offers.has("session_capabilities.close")

    @property
    def delete(self) -> bool:
        """Whether a session can be deleted."""
        return self._offers.has("session_capabilities.delete")

    @property
    def fork(self) -> bool:
        """Whether a session can be forked."""
        return self._offers.has("session_capabilities.fork")

    @property
    def title(self) -> bool:
        """Whether the client may set a session's title."""
        return self._offers.has("session_capabilities.title")

    @property
    def archive(self) -> bool:
        """Whether sessions can be archived."""
        return self._offers.has("session_capabilities.archive")

    @property
    def status(self) -> bool:
        """Whether the agent reports if a session is open."""
        return self._offers.has("session_capabilities.status")

    @property
    def system_prompt(self) -> bool:
        """Whether the client may add to the agent's system prompt."""
        return self._offers.has("session_capabilities.system_prompt")

    @property
    def system_prompt_override(self) -> bool:
        """Whether the client may replace the agent's system prompt."""
        return self._offers.has("session_capabilities.system_prompt.mode.override")

    @property
    def additional_directories(self) -> bool:
        """Whether a session may have more folders than `cwd`."""
        return self._offers.has("session_capabilities.additional_directories")
