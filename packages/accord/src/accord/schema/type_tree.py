"""Reads a type's annotations into a small tree.

The annotations of `schema` are read only here, and once for each class. Three parts use the tree: `tolerant` (for
values that the strict decoder refused), `describe` (JSON Schema), and tests.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, NewType, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, UnsetType

from accord.schema.base import Choice, Every, Mark, SecondTag, Words, plain_class, tag_of

NoneType = type(None)


class Anything(msgspec.Struct, frozen=True):
    """Any JSON at all."""


class Scalar(msgspec.Struct, frozen=True):
    """A string, number, boolean or null, perhaps within bounds."""

    type: type
    least: float | None = None
    most: float | None = None
    shortest: int | None = None
    longest: int | None = None


class OneWord(msgspec.Struct, frozen=True, eq=False):
    """A string of a set; an open set takes any other string too, `read_open` only when reading.

    The order of the words does not count: for `typing`, two sets of the same words are equal, so it may give the words
    of one in the order in which another module has written them.
    """

    known: tuple[str, ...]
    open: bool = False
    read_open: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneWord) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[frozenset[str], bool, bool]:
        return frozenset(self.known), self.open, self.read_open


class ListOf(msgspec.Struct, frozen=True):
    item: Node
    skip_invalid: bool = False


class MapOf(msgspec.Struct, frozen=True):
    value: Node


class Object(msgspec.Struct, frozen=True):
    cls: type[msgspec.Struct]


class Tagged(msgspec.Struct, frozen=True):
    """Objects told apart by one field; `open`: an unknown tag becomes `Unknown`, if it has `every` one of these."""

    tag_field: str
    variants: tuple[tuple[str, type[msgspec.Struct]], ...]
    open: bool = False
    every: tuple[str, ...] = ()


class Chosen(msgspec.Struct, frozen=True):
    """Variants that a function tells apart."""

    cls: type[Choice]
    variants: tuple[Node, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """The first of these that fits."""

    options: tuple[Node, ...]


class Named(msgspec.Struct, frozen=True):
    """A type with a name of its own in the protocol."""

    name: str
    node: Node


class Foreign(msgspec.Struct, frozen=True):
    """A type that only msgspec understands: dates, enums and the like in messages of one's own."""

    type: Any


Node: TypeAlias = Anything | Scalar | OneWord | ListOf | MapOf | Object | Tagged | Chosen | AnyOf | Named | Foreign

NULL = Scalar(NoneType)


class Field(msgspec.Struct, frozen=True):
    """One field of an object, with its name here and its name on the wire."""

    name: str
    wire: str
    node: Node
    marks: frozenset[Mark]
    required: bool
    default: Callable[[], Any] | None
    unset: bool
    """Whether an absent value and null are different, as in a patch."""


@functools.cache
def fields_of(cls: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Return the fields of this class, including inherited ones, in their order; without those that a peer invented."""
    cls = plain_class(cls)
    hints = typing.get_type_hints(cls, include_extras=True)
    return tuple(_field(field, hints[field.name]) for field in msgspec.structs.fields(cls))


@functools.cache
def second_union(cls: type[msgspec.Struct]) -> Tagged | None:
    """Return the union whose variants are all in this class, if one of its fields is the tag of that union."""
    for hint in typing.get_type_hints(cls, include_extras=True).values():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, SecondTag) and isinstance(union := node_of(extra.union), Tagged):
                return union
    return None


def _field(field: msgspec.structs.FieldInfo, hint: Any) -> Field:
    node, marks = _read(hint)
    return Field(
        name=field.name,
        wire=field.encode_name,
        node=node,
        marks=marks,
        required=field.required,
        default=_default(field),
        unset=field.default is UNSET,
    )


def _default(field: msgspec.structs.FieldInfo) -> Callable[[], Any] | None:
    if field.default_factory is not msgspec.NODEFAULT:
        return typing.cast("Callable[[], Any]", field.default_factory)
    if field.default is not msgspec.NODEFAULT:
        return lambda: field.default
    return None


def node_of(hint: Any) -> Node:
    """The node for this annotation."""
    return _read(hint)[0]


def _read(hint: Any) -> tuple[Node, frozenset[Mark]]:
    """The node for this annotation, and its marks as the type of a field."""
    if get_origin(hint) is Annotated:
        return _annotated(*get_args(hint))
    if isinstance(hint, NewType):
        return Named(hint.__name__, node_of(hint.__supertype__)), frozenset()
    return _bare(hint), frozenset()


def _annotated(inner: Any, *extras: Any) -> tuple[Node, frozenset[Mark]]:
    node, inner_marks = _read(inner)
    marks = inner_marks | {extra for extra in extras if isinstance(extra, Mark)}
    for extra in extras:
        match extra:
            case Words(known):
                node = OneWord(known, open=True)
            case Meta():
                node = _bounded(node, extra)
            case str():
                node = Named(extra, node)
            case Mark.OPEN:
                node = _opened(node)
            case Every(names) if isinstance(node, Tagged):
                node = msgspec.structs.replace(node, every=names)
            case Mark.SKIP_INVALID_ITEMS if isinstance(node, ListOf):
                node = ListOf(node.item, skip_invalid=True)
            case Mark.READ_OPEN if isinstance(node, OneWord):
                node = OneWord(node.known, read_open=True)
            case _:
                pass
    return node, marks - {Mark.OPEN, Mark.SKIP_INVALID_ITEMS}


def _opened(node: Node) -> Node:
    """An open union; one that has a single variant so far looks like that variant."""
    if isinstance(node, Object) and (tag := tag_of(node.cls)) is not None:
        node = Tagged(str(node.cls.__struct_config__.tag_field), ((tag, node.cls),))
    return msgspec.structs.replace(node, open=True) if isinstance(node, Tagged) else node


def _bounded(node: Node, meta: Meta) -> Node:
    if not isinstance(node, Scalar):
        raise TypeError(f"bounds are allowed only on plain types, got {node}")
    return Scalar(node.type, least=meta.ge, most=meta.le, shortest=meta.min_length, longest=meta.max_length)


def _bare(hint: Any) -> Node:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return Anything()
    if hint is None or hint in (str, int, float, bool, NoneType):
        return Scalar(hint or NoneType)
    if origin is Literal:
        return OneWord(arguments)
    if origin is list or hint is list:
        return ListOf(node_of(arguments[0]) if arguments else Anything())
    if origin is dict or hint is dict:
        return MapOf(node_of(arguments[1]) if arguments else Anything())
    if origin is Union or origin is types.UnionType:
        return _union([argument for argument in arguments if argument is not UnsetType])
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return Object(hint)
    if isinstance(hint, type) and issubclass(hint, Choice):
        return Chosen(hint, tuple(node_of(variant) for variant in hint.__variants__))
    return Foreign(hint)


def _union(members: list[Any]) -> Node:
    nodes = [node_of(member) for member in members]
    tagged = [(tag, node.cls) for node in nodes if isinstance(node, Object) and (tag := tag_of(node.cls)) is not None]
    rest = [node for node in nodes if not (isinstance(node, Object) and tag_of(node.cls) is not None)]
    if tagged:
        tag_field = tagged[0][1].__struct_config__.tag_field
        rest.insert(0, Tagged(str(tag_field), tuple(tagged)))
    return rest[0] if len(rest) == 1 else AnyOf(tuple(rest))
