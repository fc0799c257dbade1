"""`Extension`: an addition to the protocol that programs agree on, declared once and used by both sides.

An extension is one class. It names its messages, its kinds of update, its members of `_meta`, and the declaration of a
side. The rest of Accord then treats it like a built-in part of the protocol:

    Agent(extensions=[Clock]) ──▶ `_meta` of the capabilities ──▶ `Capabilities.extension(Clock)` of the other side
    request(TellTime(...))    ──▶ CapabilityMissing, unless the other side declared Clock
    @agent.on(TellTime)       ──▶ ValueError, unless this side declares Clock
    session.extension(Clock)  ──▶ an object of the class, with its calls and with what it has folded of the session

Messages pay nothing for it: a message class refers to the extension that it needs like to a capability, and a client
without extensions reads its updates as before.

Extensions differ in where they are declared. `declaration` and `declared_in` are the two halves of that, and an
extension that follows another convention overrides both.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast, get_args, get_origin

from accord.errors import DecodeError
from accord.installation import EXTENSIONS, PluginError, load_plugin, plugins
from accord.mistakes import check_sequence, wrong_type
from accord.schema import codec
from accord.schema.base import Json, Notification, Request, Unknown, tag_of

if TYPE_CHECKING:
    from accord.schema.shared_updates import Notice

log = logging.getLogger("accord")

T = TypeVar("T")
OfferT = TypeVar("OfferT")
ResultT = TypeVar("ResultT")
ExtensionT = TypeVar("ExtensionT", bound="Extension[Any]")


class OtherSide(Protocol):
    """The other side of a connection: the agent of a client, or the client of an agent."""

    @property
    def capabilities(self) -> Any:
        """Its `Capabilities`."""
        ...

    async def request(self, request: Request[ResultT], /) -> ResultT: ...
    async def notify(self, notification: Notification, /) -> None: ...


class MetaMember(Generic[T]):
    """A member of `_meta` with its type; several names are the path through objects in it.

    >>> zone = MetaMember(str, "example.com/zone")
    >>> zone.meta("UTC"), zone.of({"example.com/zone": "UTC"}), zone.of({"example.com/zone": 7})
    ({'example.com/zone': 'UTC'}, 'UTC', None)
    """

    def __init__(self, type: type[T], *path: str) -> None:
        self._type = type
        self.path = path
        """The names on the path to it."""

    def of(self, said: object) -> T | None:
        """Read it from the `meta` of this object, or from this `_meta`; None if it is missing or of another type.

        A wrong type is no error, as for the optional members of the protocol itself.
        """
        value: Any = cast("Any", said) if isinstance(said, dict) else getattr(said, "meta", None)
        for name in self.path:
            if not isinstance(value, dict):
                return None
            value = cast("dict[str, Any]", value).get(name)
        if value is None:
            return None
        try:
            return codec.convert(value, self._type)
        except DecodeError:
            return None

    def meta(self, value: T) -> dict[str, Json]:
        """Return the `_meta` with this value, for the `meta=` of a call; None as the value removes it."""
        made: dict[str, Json] = {self.path[-1]: codec.plain(value)}
        for name in reversed(self.path[:-1]):
            made = {name: made}
        return made


class Extension(Generic[OfferT]):
    """An addition to the protocol: its messages, updates and members of `_meta`, and its declaration.

    >>> import accord
    >>> class Time(accord.Model):
    ...     now: str
    >>> class TellTime(accord.Request[Time], method="_example.com/time"):
    ...     session_id: str
    >>> class Clock(accord.Extension[dict[str, str]], name="example.com/clock"):
    ...     messages = (TellTime,)
    ...
    ...     async def now(self) -> str:
    ...         return (await self.request(TellTime(self.session_id))).now

    The type argument is the type of a side's declaration; its value without arguments is the default one. Wrong types
    are answered as in the protocol: -32602 for params, `ProtocolError` for a result. An object of the class belongs to
    one session or one connection; `session.extension(Clock)` returns it. An object that is made without them can `fold`
    the updates of a record.
    """

    name: ClassVar[str]
    """Its name, and the key in the `_meta` of capabilities that declares it."""
    label: ClassVar[str] = ""
    """The text before its `summary`; empty for the name."""
    messages: ClassVar[Sequence[type[Request[Any] | Notification]]] = ()
    """The requests and notifications that only it has."""
    updates: ClassVar[Sequence[type[Any]]] = ()
    """The kinds of session updates that only it has: classes with the tag field `sessionUpdate`."""
    is_in_answer: ClassVar[bool] = False
    """Whether an agent declares it in the `_meta` of its answer to `initialize`, not of its capabilities."""
    _offer_type: ClassVar[Any] = dict

    def __init_subclass__(cls, *, name: str | None = None, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for base in cls.__dict__.get("__orig_bases__", ()):
            if get_args(base) and not isinstance(get_args(base)[0], TypeVar):
                cls._offer_type = get_args(base)[0]
        if name is None:
            return
        cls.name = name
        if callable(cast("object", cls.summary)):
            raise TypeError(f"{cls.__name__}.summary must be a property, got a method; write @property above it")
        for message in cls.messages:
            if not message.__method__.startswith("_"):
                raise ValueError(
                    f"{cls.__name__}: the method of {message.__name__} must begin with an underscore, "
                    f"got {message.__method__!r}"
                )
            message.__needs__ = cls
        for update in cls.updates:
            if update.__struct_config__.tag_field != "sessionUpdate":
                raise TypeError(
                    f"{cls.__name__}: write class {update.__name__}(..., tag_field='sessionUpdate', tag=...)"
                )

    def __init__(self, other: OtherSide | None = None, session: Any = None) -> None:
        self._link = other
        self._session = session

    @property
    def _other(self) -> OtherSide:
        if self._link is None:
            raise TypeError(f"{self.name}: take it from a session, as session.extension({type(self).__name__})")
        return self._link

    # Declarations

    @classmethod
    def declaration(cls, offer: OfferT) -> dict[str, Json]:
        """The `_meta` with which a side declares this."""
        return {cls.name: codec.plain(offer)}

    @classmethod
    def declared_in(cls, meta: Mapping[str, Json]) -> OfferT | None:
        """Return the other side's declaration from its `_meta`; None if there is none that fits."""
        said: Any = {} if meta.get(cls.name) is True else meta.get(cls.name)
        try:
            return None if said is None or said is False else codec.convert(said, cls._offer_type)
        except DecodeError:
            return None

    @classmethod
    def place(cls) -> str:
        """Return its name in errors: where the other side would declare it."""
        return f'_meta["{cls.name}"]'

    # Reading, by a client

    @classmethod
    def read(cls, update: object) -> Any:
        """Return an update of a kind that only this extension has, as a value of its class; None for any
        other update.
        """
        known = None
        if isinstance(update, Unknown):
            known = next((it for it in cls.updates if tag_of(it) == update.tag), None)
        if known is None:
            return None
        try:
            return codec.convert(cast("Unknown", update).raw, known)
        except DecodeError:
            return None

    @staticmethod
    def translate(update: Any) -> Sequence[Any] | None:  # noqa: ARG004
        """Return the equivalent updates of `accord.updates` for this one; None for an update that stays unchanged.

        A client that has the extension reads them instead of the update.
        """
        return None

    @classmethod
    def notice(cls, update: Any) -> Notice | None:  # noqa: ARG003
        """Return a text for users about this update, for programs that show any extension; None for nothing."""
        return None

    def fold(self, update: Any) -> Any:
        """Take an update of the session into this object. A client calls it if the class overrides it."""

    @property
    def summary(self) -> str | None:
        """Return one line about the present state of the session, for programs that show any extension; None for
        nothing.
        """
        return None

    @classmethod
    @cache
    def overrides(cls, name: str) -> bool:
        """Whether the class has its own `fold`, `translate`, `notice` or `summary`."""
        return any(name in base.__dict__ for base in cls.__mro__ if base.__module__ != __name__)

    @classmethod
    def default_offer(cls) -> OfferT:
        """Return the default declaration of a side."""
        return cast("OfferT", (get_origin(cls._offer_type) or cls._offer_type)())

    # For both sides

    @property
    def offer(self) -> OfferT | None:
        """The other side's declaration of this extension; None if there is none."""
        return cast("OfferT | None", self._other.capabilities.extension(type(self)))

    @property
    def session_id(self) -> str:
        """The id of the session; raises TypeError for the object of a whole connection."""
        if self._session is None:
            raise TypeError(f"{self.name}: take it from a session, as session.extension({type(self).__name__})")
        return str(self._session.id)

    async def request(self, request: Request[ResultT]) -> ResultT:
        """Send a request of this extension; raises `CapabilityMissing` if the other side did not declare it."""
        return await self._other.request(request)

    async def notify(self, notification: Notification) -> None:
        """Send a notification of this extension; raises `CapabilityMissing` if the other side did not declare it."""
        await self._other.notify(notification)

    async def send(self, update: Any) -> None:
        """Send an update of a kind that only this extension has, from an agent; it is stored with the session."""
        self._other.capabilities.require(type(self), f"sending {type(update).__name__}")
        tag = tag_of(cast("type[Any]", update.__class__)) or ""
        await self._session.send(Unknown(tag, codec.plain(update)))


Extensions = Mapping[type[Extension[Any]], Any]
"""The extensions of a side, each with its declaration."""


def chosen_extensions(
    call: str, given: Iterable[type[Extension[Any]] | str] | Extensions
) -> dict[type[Extension[Any]], Any]:
    """Return the extensions that an author chose: classes, or the names of installed ones, with their declarations."""
    if not isinstance(given, Mapping):
        check_sequence(call, "extensions", given)
    offers: Mapping[Any, Any] = cast("Mapping[Any, Any]", given) if isinstance(given, Mapping) else {}
    chosen: dict[type[Extension[Any]], Any] = {}
    for it in cast("Iterable[Any]", given):
        extension: Any = installed_extensions(it)[0] if isinstance(it, str) else it
        is_one = isinstance(extension, type) and issubclass(extension, Extension)
        if not is_one or not getattr(cast("Any", extension), "name", ""):
            raise wrong_type(call, "classes of accord.Extension with a name", it)
        chosen[extension] = offers[it] if it in offers else cast("Any", extension).default_offer()
    return chosen


def installed_extensions(*names: str) -> list[type[Extension[Any]]]:
    """Return the extensions of installed distributions by the names of their entry points, or all of them.

    Raises ValueError for a name that no distribution registers, and PluginError for a named one that cannot be loaded.
    When all are requested, a broken one is skipped with a warning.
    """
    known = plugins(EXTENSIONS)
    for name in names:
        if name not in known:
            raise ValueError(f"no extension {name!r} is installed; known are {', '.join(known)}")
    if names:
        return [load_plugin(known[name]) for name in names]
    found: list[type[Extension[Any]]] = []
    for plugin in known.values():
        try:
            found.append(load_plugin(plugin))
        except PluginError as error:
            warnings.warn(str(error), stacklevel=2)
    return found


def declarations(extensions: Extensions, *, in_answer: bool | None = None) -> dict[str, Json]:
    """Return the `_meta` that declares these extensions: those of the answer to `initialize`, the others, or all."""
    declared: dict[str, Json] = {}
    for extension, offer in extensions.items():
        if in_answer is None or extension.is_in_answer is in_answer:
            declared = merged_meta(declared, extension.declaration(offer))
    return declared


def merged_meta(one: Mapping[str, Json] | None, other: Mapping[str, Json] | None) -> dict[str, Json]:
    """Return both `_meta` in one: objects of the same name are merged, and lists joined.

    >>> merged_meta({"a": {"b": [1]}, "c": 1}, {"a": {"b": [2], "d": 3}})
    {'a': {'b': [1, 2], 'd': 3}, 'c': 1}
    """
    merged: dict[str, Any] = dict(one or {})
    for name, value in (other or {}).items():
        known = merged.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[name] = merged_meta(cast("dict[str, Any]", known), cast("dict[str, Any]", value))
        elif isinstance(known, list) and isinstance(value, list):
            items = cast("list[Any]", known)
            merged[name] = [*items, *(it for it in cast("list[Any]", value) if it not in items)]
        else:
            merged[name] = value
    return merged


def translated(extensions: Sequence[type[Extension[Any]]], update: Any) -> Sequence[Any]:
    """Return the equivalent updates of `accord.updates` for this one, as these extensions know them."""
    for place, extension in enumerate(extensions, 1):
        if (made := extension.translate(update)) is not None:
            return [said for new in made for said in translated(extensions[place:], new)]
    return (update,)


def notice_of(extensions: Iterable[type[Extension[Any]]], update: Any) -> Notice | None:
    """Return a text for users about an update or an `Outcome`, from the first extension that has one.

    A value with neither `_meta` nor an unknown kind says nothing of an extension.
    """
    if not isinstance(update, Unknown) and not getattr(update, "meta", None):
        return None
    for extension in extensions:
        try:
            if (said := extension.notice(update)) is not None:
                return said
        except Exception:
            log.exception("the notice of the extension %s failed", extension.name)
    return None
