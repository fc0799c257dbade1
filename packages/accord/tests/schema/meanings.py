"""What instances mean: one form for all that mean the same, so that two can be compared."""

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from accord.schema.base import Mark
from accord.schema.codec import plain
from accord.schema.type_tree import (
    AnyOf,
    Chosen,
    Field,
    ListOf,
    MapOf,
    Node,
    Object,
    Scalar,
    Tagged,
    fields_of,
    node_of,
)
from tests.schema.nodes import Json, bare, kind_of, kinds, meant, tag_of_variant


def meaning(hint: Any, value: Json) -> Json:
    """This instance in one form for all that mean the same.

    Left out are: keys that the type does not have, a null where null and absent are the same, a field that holds its
    default, and the tag of a class that stands alone. A null that stands for an empty value is that empty value.
    """
    return _meaner(node_of(hint))(value)


def same(one: Json, other: Json) -> bool:
    """Equal as JSON: unlike in Python, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def empty_of(field: Field) -> Json:
    """What a field holds when what was sent for it counts for nothing."""
    if field.default is not None:
        return plain(field.default())
    return {"list": [], "object": {}}.get("".join(kinds(field.node)))


@functools.cache
def _meaner(node: Node) -> Callable[[Json], Json]:
    match bare(node):
        case Scalar(type=kind) if kind is float:
            return lambda value: float(value) if type(value) is int else value
        case ListOf(item):
            inner = _meaner(item)
            return lambda value: [inner(each) for each in value] if isinstance(value, list) else value
        case MapOf(item):
            inner = _meaner(item)
            return lambda value: {key: inner(each) for key, each in value.items()} if _is_object(value) else value
        case Object(cls):
            return functools.partial(_meaning_of_object, cls)
        case Tagged() | Chosen() as union:
            return functools.partial(_meaning_of_variant, union, kinds(union))
        case AnyOf(options):
            by_kind = {kind: _meaner(option) for option in reversed(options) for kind in kinds(option)}
            return lambda value: by_kind.get(kind_of(value), _itself)(value)
        case _:
            return _itself


def _itself(value: Json) -> Json:
    return value


def _is_object(value: Json) -> bool:
    return isinstance(value, dict)


def _meaning_of_variant(union: Tagged | Chosen, possible: set[str], value: Json) -> Json:
    if kind_of(value) not in possible:
        return value
    variant = meant(union, value)
    said = _meaner(variant)(value)
    return {**said, **tag_of_variant(variant)} if isinstance(said, dict) else said


def _meaning_of_object(cls: type[msgspec.Struct], value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    meaning = {}
    for wire, unset, on_null, default, inner in _meaners_of_fields(cls):
        if wire not in value:
            continue
        said = value[wire]
        if said is None:
            said = on_null
            if said is None and not unset:
                continue
        said = inner(said)
        if unset or not same(said, default):
            meaning[wire] = said
    return meaning


@functools.cache
def _meaners_of_fields(cls: type[msgspec.Struct]) -> list[tuple[str, bool, Json, Json, Callable[[Json], Json]]]:
    """For each field: its name, whether to keep it always, what null means, its default, and how to read it."""
    found = []
    for field in fields_of(cls):
        inner = _meaner(field.node)
        on_null = empty_of(field) if Mark.DEFAULT_ON_NULL in field.marks else None
        kept = field.required or field.unset
        found.append((field.wire, kept, on_null, None if kept else inner(empty_of(field)), inner))
    return found
