"""The base classes and marks of the protocol's types.

A type is a frozen `msgspec.Struct`: snake_case here, camelCase on the wire. Optional fields are left out when they hold
their default. Rules of the protocol about a field are in its type, as one of these markers:

| marker | on the wire |
|---|---|
| `Tolerant[T]` | a bad value becomes the field's default instead of an error |
| `ValidItems[T]` | a list whose bad items are dropped |
| `NullAsDefault[T]` | `null` becomes the field's default |
| `ReadOpen[T]` | an unknown word is kept when read, and refused when written |
| `Unstable[T]` | not in the stable protocol: sent only when negotiated or asked for |
| `Patch[T]` | three things: left out (`UNSET`: as it was), `null` (cleared), a value (replaced) |
| `Open[A | B]` | a union by tag; an unknown tag becomes `Unknown` |
| `every(...)` | texts that an `Unknown` of an open union must have as well |
| `second_tag(U)` | this field is the tag of U, a union whose variants' fields are all in this class |

The strict decoder ignores the markers: good traffic fits the plain types. `tolerant` reads them when the strict decoder
has refused a value, and so does `describe`.
"""

from __future__ import annotations
import __future__

import enum
import functools
import inspect
import itertools
import os
import types
import typing
from abc import ABC, ABCMeta
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
)

import msgspec
from msgspec import UNSET, Meta, UnsetType

T = TypeVar("T")
ResultT = TypeVar("ResultT")
ShapeT = TypeVar("ShapeT", bound="Shape")

Json: TypeAlias = Any
"""Any JSON value."""

JsonObject: TypeAlias = dict[str, Json]
"""A JSON object, such as the `_meta` of a message."""

Side = str
"""The side that handles a message: `agent`, `client`, `proxy`, or `protocol` for either."""


class Mark(enum.Enum):
    """Marks that a field's type carries: how tolerantly the field is read."""

    DEFAULT_ON_ERROR = "default-on-error"
    SKIP_INVALID_ITEMS = "skip-invalid-items"
    DEFAULT_ON_NULL = "default-on-null"
    READ_OPEN = "read-open"
    UNSTABLE = "unstable"
    OPEN = "open"

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """An open union as a field of a pydantic model, unknown variants included."""
        if self is not Mark.OPEN:
            return handler(source)
        from accord.schema.describe import schema_for_pydantic  # loaded when pydantic asks

        return schema_for_pydantic(Annotated[source, self])


Tolerant = Annotated[T, Mark.DEFAULT_ON_ERROR]
"""A member that has its default where the other side's value is wrong."""
ValidItems = Annotated[list[T], Mark.SKIP_INVALID_ITEMS]
NullAsDefault = Annotated[T, Mark.DEFAULT_ON_NULL]
ReadOpen = Annotated[T, Mark.READ_OPEN]
Unstable = Annotated[T, Mark.UNSTABLE]
Patch: TypeAlias = T | UnsetType | None


class Words(msgspec.Struct, frozen=True):
    """An open set of words: these are known, and any other string is accepted."""

    known: tuple[str, ...]


def words(*known: str) -> Words:
    """Marks a string type as an open set of these words."""
    return Words(known)


def words_of(type: Any) -> tuple[str, ...]:
    """Return the words of such a set."""
    return typing.get_args(type)[1].known  # type: ignore[no-any-return]


class Every(msgspec.Struct, frozen=True):
    """Texts that every variant of an open union has, known or not, by their names on the wire."""

    names: tuple[str, ...]


def every(*names: str) -> Every:
    """Marks an open union whose unknown variants must have these texts too."""
    return Every(names)


class SecondTag(msgspec.Struct, frozen=True):
    """Marks a field that is the tag of a second union, whose variants are all in this one class.

    A struct has one tag, but some variants on the wire have two: `{"sessionUpdate": "state_update", "state": "idle"}`.
    Such a variant is one flat class. An unknown second tag makes the whole object `Unknown`.
    """

    union: Any


def second_tag(union: Any) -> SecondTag:
    """Mark a field as the tag of this union."""
    return SecondTag(union)


Uint16 = Annotated[int, Meta(ge=0, le=2**16 - 1)]
Uint32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Uint64 = Annotated[int, Meta(ge=0)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Unknown:
    """A variant of a union that this version of Accord does not know, stored and written back unchanged.

    >>> Unknown("hologram", {"type": "hologram", "depth": 3}).raw["depth"]
    3
    """

    __slots__ = ("raw", "tag")
    __match_args__ = ("tag", "raw")

    def __init__(self, tag: str, raw: Mapping[str, Json]) -> None:
        self.tag = tag
        """The tag that names the variant."""
        self.raw = dict(raw)
        """The whole object, its tag included."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown) and (self.tag, self.raw) == (other.tag, other.raw)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Unknown({shortened(self.tag)}, {shortened(self.raw)})"


if TYPE_CHECKING:
    Open: TypeAlias = Union[T, Unknown]  # noqa: UP007
else:
    # msgspec refuses a union with a class that is not a Struct, so only the tolerant reader makes an `Unknown`.
    Open = Annotated[T, Mark.OPEN]


if TYPE_CHECKING:

    @dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
    class _ShapeMeta(msgspec.StructMeta):
        """Shows type checkers that all our types are frozen, even those whose class line does not repeat it."""
else:
    _ShapeMeta = msgspec.StructMeta


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _MessageMeta(_ShapeMeta):
    """Takes the class keywords of messages that msgspec does not know: `method`, `needs`, `unstable` and the traits.

    The traits define what the engine does with a message: `patient` and `handshake` of a request, `immediate` and
    `stream` of a notification. `Request` and `Notification` explain them.

    Only messages have it: before Python 3.12 a metaclass that is written in Python makes instances slower to construct.
    """

    def __new__(  # noqa: PYI034
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        method: str | None = None,
        needs: str | None = None,
        unstable: bool | None = None,
        patient: bool | None = None,
        handshake: bool | None = None,
        immediate: bool | None = None,
        stream: bool | None = None,
        **config: Any,
    ) -> _MessageMeta:
        cls = super().__new__(mcls, name, bases, namespace, **config)
        given = {
            "__method__": method,
            "__needs__": needs,
            "__unstable__": unstable,
            "__patient__": patient,
            "__handshake__": handshake,
            "__immediate__": immediate,
            "__stream__": stream,
        }
        for attribute, value in given.items():
            if value is not None:
                setattr(cls, attribute, value)
        return cls


def unstable(cls: type[ShapeT]) -> type[ShapeT]:
    """Mark a type that is only proposed. Messages have a class keyword: `class X(Request[Y], unstable=True)`."""
    cls.__unstable__ = True
    return cls


def needs(capability: str) -> Callable[[type[ShapeT]], type[ShapeT]]:
    """Mark a type that needs this capability of the other side. Messages have a class keyword: `needs=...`."""

    def mark(cls: type[ShapeT]) -> type[ShapeT]:
        cls.__needs__ = capability
        return cls

    return mark


class Shape(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, metaclass=_ShapeMeta):
    """Fields in an object; the few types of the protocol without `_meta` are only this."""

    __unstable__: ClassVar[bool] = False
    __needs__: ClassVar[Any] = None
    """The capability that the other side must have declared, as a path (`session_capabilities.fork`), or an
    `Extension`.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Callable[[Any], Any]) -> Any:
        """Return the pydantic schema for this type as a field of a model."""
        from accord.schema.describe import schema_for_pydantic  # loaded when pydantic asks

        return schema_for_pydantic(cls)

    def __repr__(self) -> str:
        optional = dict(zip(reversed(self.__struct_fields__), reversed(self.__struct_defaults__), strict=False))
        shown = (
            f"{name}={shortened(value)}"
            for name in self.__struct_fields__
            if name not in optional or not _is_default(getattr(self, name), optional[name])
            for value in (getattr(self, name),)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class Model(Shape, kw_only=True):
    """A type of the protocol: fields, and `meta` (`_meta` on the wire), which either side may use for extensions."""

    meta: Tolerant[dict[str, Json] | None] = msgspec.field(name="_meta", default=None)
    """Extensions, by name; None if there are none."""


class Upsert(Shape, kw_only=True):
    """A type whose fields are patches, including `meta`: left out, `null` and a value are three things."""

    __replaces_meta__: ClassVar[bool] = False
    """Whether `meta` replaces the previous one, as in version 1; else each of its keys is patched."""

    meta: Tolerant[Patch[dict[str, Json]]] = msgspec.field(name="_meta", default=UNSET)


class Request(Model, Generic[ResultT], metaclass=_MessageMeta):
    """The params of a call; its type argument is the type of the result.

    >>> class Greet(Request[str], method="_example.com/greet"):
    ...     name: str
    """

    __method__: ClassVar[str]
    __params__: ClassVar[Any] = None
    """The union of its variants, for a message whose params are one of several classes."""
    __patient__: ClassVar[bool] = False
    """Whether its answer may take long without harm: reading may pause while only such requests are open."""
    __handshake__: ClassVar[bool] = False
    """Whether it opens the connection: it comes first, and declares its sender's capabilities."""


class Notification(Model, metaclass=_MessageMeta):
    """The params of a message that gets no answer."""

    __method__: ClassVar[str]
    __params__: ClassVar[Any] = None
    """The union of its variants, for a message whose params are one of several classes."""
    __immediate__: ClassVar[bool] = False
    """Whether it is handled on arrival, before earlier notifications of its session that wait."""
    __stream__: ClassVar[bool] = False
    """Whether it makes up most of a connection's traffic: each brings one `update`, and is decoded on a fast path."""


for _base in Shape, Model, Upsert, Request, Notification:
    # msgspec evaluates them again for each class below: as texts, that made up two fifths of making a decoder.
    _base.__annotations__ = inspect.get_annotations(_base, eval_str=True)


class Choice(ABC):
    """A union whose variants no single tag distinguishes, so that a function must choose.

    `choice` builds it. It is an abstract class with the variants registered; msgspec passes such a type to our hook.
    """

    __variants__: ClassVar[tuple[Any, ...]]
    __choose__: ClassVar[Callable[[Json], Any]]
    __unknown__: ClassVar[Callable[[Json], Unknown | None]]

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Callable[[Any], Any]) -> Any:
        """Return the pydantic schema for this type as a field of a model."""
        from accord.schema.describe import schema_for_pydantic  # loaded when pydantic asks

        return schema_for_pydantic(cls)


_PLAIN = (dict, list, str, int, float, bool)


def choice(
    name: str,
    choose: Callable[[Json], Any],
    *variants: Any,
    unknown: Callable[[Json], Unknown | None] = lambda _: None,
) -> type[Choice]:
    """Make a `Choice` among these types.

    `choose` returns the type that a raw JSON value must have, or None if it fits no variant. `unknown` is called with a
    value that does not fit the chosen type; it returns an `Unknown`, or None if such a value is an error. `Any` among
    the variants stands for plain JSON.
    """
    made = cast("Any", ABCMeta)(
        name,
        (Choice,),
        {"__variants__": variants, "__choose__": staticmethod(choose), "__unknown__": staticmethod(unknown)},
    )
    for variant in variants:
        for cls in _PLAIN if variant is Any else (get_origin(variant) or variant,):
            made.register(cls)
    made.register(Unknown)
    return cast("type[Choice]", made)


def tagged_or(name: str, tag_field: str, fallback: type[Shape], *tagged: type[Shape], means: str = "") -> type[Choice]:
    """Make a choice by tag, in which one variant has none: `fallback`, whose tag may be left out or be `means`.

    A value with an unknown tag is tried as the fallback too; if that fails, it is `Unknown`.
    """
    by_tag = {tag_of(variant): variant for variant in tagged}

    def choose(value: Json) -> Any:
        if not isinstance(value, dict):
            return None
        tag = cast("dict[str, Json]", value).get(tag_field)
        return by_tag.get(tag, fallback) if isinstance(tag, str) else fallback

    def unknown(value: Json) -> Unknown | None:
        tag = cast("dict[str, Json]", value).get(tag_field)
        return Unknown(tag, value) if isinstance(tag, str) and tag != means and tag not in by_tag else None

    return choice(name, choose, *tagged, fallback, unknown=unknown)


def tag_of(cls: type[msgspec.Struct]) -> str | None:
    """Return the tag of a class in its union; None if it has no tag."""
    tag = cls.__struct_config__.tag
    return None if tag is None else str(tag)


def result_type(request: type[Request[Any]]) -> Any:
    """Return the type of the result of a request: the argument that its class gives to `Request`."""
    for cls in request.__mro__:
        for base in cls.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Request:
                return get_args(base)[0]
    raise TypeError(
        f"{request.__name__} has no result type: declare it as class {request.__name__}(Request[ResultType])"
    )


def _is_default(value: object, default: object) -> bool:
    if value is default:
        return True
    # In a patch an empty list has a meaning: the list is empty now.
    return default is not UNSET and value in ([], {}) and not isinstance(value, msgspec.Struct)


_LONGEST_TEXT = 80
_MOST_ITEMS = 8
_MOST_BITS = 256


def shortened(value: object, depth: int = 0) -> str:
    """Return a value shortened for a log line: long texts and lists are cut, with their length.

    The deeper a list or an object is nested, the fewer of its items are shown, and in the end none: a peer may nest
    them a thousand levels deep.
    """
    if isinstance(value, str):
        if len(value) <= _LONGEST_TEXT:
            return repr(value)
        return f"{value[: _LONGEST_TEXT // 2]!r}… ({len(value):,} characters)"
    most = _MOST_ITEMS >> depth
    if isinstance(value, list):
        items = cast("list[object]", value)
        return f"[{_listed([shortened(item, depth + 1) for item in items[:most]], len(items))}]"
    if isinstance(value, dict):
        pairs = itertools.islice(cast("dict[object, object]", value).items(), most)
        shown = [f"{shortened(key)}: {shortened(item, depth + 1)}" for key, item in pairs]
        return f"{{{_listed(shown, len(cast('dict[object, object]', value)))}}}"
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"… (an integer of {value.bit_length():,} bits)"
    return repr(value)


def _listed(shown: list[str], there_are: int) -> str:
    return ", ".join(shown + [f"… {there_are - len(shown):,} more"] * (there_are > len(shown)))


__all__ = [
    "UNSET",
    "Choice",
    "Every",
    "Int32",
    "Int64",
    "Json",
    "Mark",
    "Model",
    "Notification",
    "NullAsDefault",
    "Open",
    "Patch",
    "ReadOpen",
    "Request",
    "SecondTag",
    "Shape",
    "Side",
    "Tolerant",
    "Uint16",
    "Uint32",
    "Uint64",
    "Unknown",
    "UnsetType",
    "Unstable",
    "ValidItems",
    "Words",
    "choice",
    "every",
    "needs",
    "result_type",
    "second_tag",
    "shortened",
    "tag_of",
    "tagged_or",
    "unstable",
    "words",
]


def public_names(*namespaces: Mapping[str, Any]) -> list[str]:
    """Return the public names that modules of the protocol define, without those that they import."""
    tools = {**vars(typing), **vars(msgspec), **globals(), **vars(__future__)}
    return sorted(
        name
        for names in namespaces
        for name, value in names.items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and tools.get(name) is not value
    )


# Members of an object that its type does not know, kept for programs that pass values on. PURE.
#
# The strict decoder skips such members, and that is right for a program that uses a value: it costs nothing. A program
# that passes a value on (a bridge between two connections, a proxy) must not lose them. It reads with
# `codec.decode_keeping`, and then:
#
#     {"type": "text", "text": "hi", "tone": "warm"}   ──▶   TextContent(text='hi', unknown_members={'tone': 'warm'})
#                                                      ◀──   encode
#
# An object with unknown members becomes an instance of a *keeping class*: a subclass of its class with one more field.
# All other objects stay instances of their own classes. There is one keeping class for each type that needed one,
# however many members peers invent. `isinstance`, `match` and `msgspec.structs.replace` work as before, and `__class__`
# is the plain class, because tables of the engine find what a value is by its `__class__`.
#
# The strict encoder meets the extra field as an object that it cannot write, and refuses, as it refuses half an emoji.
# The careful encoder then writes the members beside the known ones. So values without unknown members pay nothing.


ValueT = TypeVar("ValueT")

_NAME = f"unknown members {os.urandom(8).hex()}"
"""The name of the extra field in plain data, which is never sent: no peer can guess it."""


class UnknownMembers:
    """The members of one object that its type does not know."""

    __slots__ = ("members",)

    def __init__(self, members: dict[str, Json]) -> None:
        self.members = members

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownMembers) and self.members == other.members

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return shortened(self.members)


class HasUnknownMembers(TypeError):
    """Raised where the strict encoder meets unknown members."""


def unknown_members(value: object) -> dict[str, Json]:
    """Return the members of this object that its type does not know; empty unless it was read by `decode_keeping`.

    >>> from accord.schema import codec, v1
    >>> unknown_members(codec.decode_keeping(b'{"type":"text","text":"hi","tone":"warm"}', v1.TextContent))
    {'tone': 'warm'}
    """
    kept = getattr(value, "unknown_members", None)
    return kept.members if isinstance(kept, UnknownMembers) else {}


def with_unknown_members(value: ValueT, members: dict[str, Json]) -> ValueT:
    """Return the same value with these members besides its own."""
    if not members or not isinstance(value, msgspec.Struct):
        return value
    fields = {name: getattr(value, name) for name in value.__struct_fields__ if name != "unknown_members"}
    return cast("ValueT", _make(value.__class__, fields, unknown_members(value) | members))


def plain_class(cls: type[Any]) -> type[Any]:
    """The class without room for unknown members."""
    return cast("type[Any]", cls.__dict__.get("__plain__", cls))


def merged(value: Json) -> Json:
    """Return plain data with unknown members beside the known ones; a known member is never overwritten."""
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        made = {name: merged(item) for name, item in fields.items() if name != _NAME}
        for name, item in cast("dict[str, Json]", fields.get(_NAME, {})).items():
            made.setdefault(name, item)
        return made
    if isinstance(value, list):
        return [merged(item) for item in cast("list[Json]", value)]
    return value


def _make(cls: type[Any], fields: dict[str, Any], members: dict[str, Json]) -> Any:
    return _keeping_class(cast("Any", cls))(**fields, unknown_members=UnknownMembers(members))


@functools.cache
def _keeping_class(cls: type[Any]) -> type[Any]:
    def fill(body: dict[str, Any]) -> None:
        body |= {
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "__annotations__": {"unknown_members": UnknownMembers},
            "unknown_members": msgspec.field(name=_NAME),
            "__plain__": cls,
            "__class__": property(lambda _: cls),
            "__reduce__": _reduced,
        }

    return types.new_class(cls.__name__, (cls,), {"kw_only": True}, fill)


def _reduced(value: Any) -> tuple[Any, ...]:
    """Return how `pickle` and `copy.deepcopy` make the value again: by its plain class, which can be found by name."""
    fields = {name: getattr(value, name) for name in value.__struct_fields__ if name != "unknown_members"}
    return _make, (value.__class__, fields, unknown_members(value))
