"""Members of an object that its type does not know, kept for programs that pass values on. PURE.

The strict decoder skips such members, and that is right for a program that uses a value: it costs nothing. A program
that passes a value on (a bridge between two connections, a proxy) must not lose them. It reads with
`codec.decode_keeping`, and then:

    {"type": "text", "text": "hi", "tone": "warm"}   ──▶   TextContent(text='hi', unknown_members={'tone': 'warm'})
                                                     ◀──   encode

An object with unknown members becomes an instance of a *keeping class*: a subclass of its class with one more field.
All other objects stay instances of their own classes. There is one keeping class for each type that needed one, however
many members peers invent. `isinstance`, `match` and `msgspec.structs.replace` work as before, and `__class__` is the
plain class, because tables of the engine find what a value is by its `__class__`.

The strict encoder meets the extra field as an object that it cannot write, and refuses, as it refuses half an emoji.
The careful encoder then writes the members beside the known ones. So values without unknown members pay nothing.
"""

from __future__ import annotations

import functools
import os
import types
from typing import Any, TypeVar, cast

import msgspec

from accord.schema.base import Json, shortened

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
    """The members of this object that its type does not know; empty unless it was read by `decode_keeping`.

    >>> from accord.schema import codec, v1
    >>> unknown_members(codec.decode_keeping(b'{"type":"text","text":"hi","tone":"warm"}', v1.TextContent))
    {'tone': 'warm'}
    """
    kept = getattr(value, "unknown_members", None)
    return kept.members if isinstance(kept, UnknownMembers) else {}


def with_unknown_members(value: ValueT, members: dict[str, Json]) -> ValueT:
    """The same value with these members besides its own."""
    if not members or not isinstance(value, msgspec.Struct):
        return value
    fields = {name: getattr(value, name) for name in value.__struct_fields__ if name != "unknown_members"}
    return cast("ValueT", _make(value.__class__, fields, unknown_members(value) | members))


def plain_class(cls: type[Any]) -> type[Any]:
    """The class without room for unknown members."""
    return cast("type[Any]", cls.__dict__.get("__plain__", cls))


def merged(value: Json) -> Json:
    """Plain data in which unknown members stand beside the known ones; a known member is never overwritten."""
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
    """How `pickle` and `copy.deepcopy` make the value again: by its plain class, which has a name to be found by."""
    fields = {name: getattr(value, name) for name in value.__struct_fields__ if name != "unknown_members"}
    return _make, (value.__class__, fields, unknown_members(value))
