"""The protocol's types, and what the nodes of their annotations say (see `accord.schema.type_tree`)."""

import functools
import importlib
import inspect
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec

from accord.schema.base import Mark, Model, Notification, Request, Shape, tag_of
from accord.schema.methods import methods
from accord.schema.type_tree import (
    AnyOf,
    Anything,
    Chosen,
    Field,
    ListOf,
    MapOf,
    Named,
    Node,
    Object,
    OneWord,
    Scalar,
    Tagged,
    fields_of,
    node_of,
    second_union,
)

Json = Any

UNKNOWN_WORD = "_accord_unknown"
WHOLE = "the whole"
ADDRESS = "https://example.com/a"
"""A text that is good everywhere, also where the other side wants a URL."""


def version_is_here(version: int) -> bool:
    try:
        methods(version)
    except LookupError:
        return False
    return True


@functools.cache
def types(version: int) -> dict[str, Any]:
    """Every type of this version, classes and aliases, by its name in the protocol; a message is what it may hold."""
    namespace = importlib.import_module(f"accord.schema.v{version}")
    abstract = (Shape, Model, Request, Notification)
    named = {
        name: value
        for name in dir(namespace)
        for value in (getattr(namespace, name),)
        if name[0].isupper() and not any(value is base for base in abstract)
    }
    return named | {row.message.__name__: row.params for row in methods(version)}


def bare(node: Node) -> Node:
    while isinstance(node, Named):
        node = node.node
    return node


def shown_fields(cls: type[msgspec.Struct], *, unstable: bool = True) -> list[Field]:
    if unstable:
        return list(fields_of(cls))
    stable = [field for field in fields_of(cls) if Mark.UNSTABLE not in field.marks]
    if (second := second_union(cls)) is not None:
        tags = OneWord(tuple(tag for tag, variant in second.variants if not variant.__unstable__))
        stable = [
            msgspec.structs.replace(field, node=tags) if field.wire == second.tag_field else field for field in stable
        ]
    return stable


def variants_of(union: Tagged | Chosen, *, unstable: bool = True) -> list[Node]:
    nodes = union.variants if isinstance(union, Chosen) else [Object(cls) for _, cls in union.variants]
    return [node for node in nodes if unstable or not (isinstance(node, Object) and node.cls.__unstable__)]


def tag_of_variant(node: Node) -> dict[str, str]:
    tag = tag_of(node.cls) if isinstance(node, Object) else None
    return {} if tag is None else {str(node.cls.__struct_config__.tag_field): tag}


def strange_variant(union: Tagged | Chosen) -> Json:
    """The least that this union keeps as `Unknown`, or None where it keeps nothing so."""
    if isinstance(union, Tagged):
        return {union.tag_field: UNKNOWN_WORD, **dict.fromkeys(union.every, ADDRESS)}
    for node in union.variants:
        for tag_field in tag_of_variant(node):
            value = {tag_field: UNKNOWN_WORD}
            return value if union.cls.__unknown__(value) is not None else None
    return None


def has_newer_second_tag(cls: type[msgspec.Struct], value: dict[str, Json]) -> bool:
    """Whether the second tag of a class that is several variants in one says that it is none of them."""
    second = second_union(cls)
    tag = value.get(second.tag_field) if second else None
    return second is not None and second.open and isinstance(tag, str) and tag not in dict(second.variants)


def holds_together(cls: type[msgspec.Struct], value: dict[str, Json]) -> bool:
    """Whether a class's own check of its fields as a whole, where it has one, accepts these."""
    check = getattr(cls, "__post_init__", None)
    if check is None:
        return True
    stand_in = SimpleNamespace()
    for field in fields_of(cls):
        missing = field.default() if field.default else None
        setattr(stand_in, field.name, value.get(field.wire, missing))
    try:
        check(stand_in)
    except ValueError:
        return False
    return True


def kinds(node: Node) -> set[str]:
    """The kinds of JSON that can be meant."""
    match bare(node):
        case Anything():
            return {"null", "boolean", "integer", "number", "string", "list", "object"}
        case Scalar(type=kind):
            names = {str: {"string"}, int: {"integer"}, float: {"integer", "number"}, bool: {"boolean"}}
            return names.get(kind, {"null"})
        case OneWord():
            return {"string"}
        case ListOf():
            return {"list"}
        case MapOf() | Object() | Tagged():
            return {"object"}
        case Chosen(_, variants) | AnyOf(variants):
            return set().union(*map(kinds, variants))
        case other:
            raise NotImplementedError(f"kinds of {other}")


def kind_of(value: Json) -> str:
    names = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "list"}
    return names.get(type(value), "object")


def meant(node: Node, value: Json) -> Node:
    """Which of a union's options this value is."""
    match bare(node):
        case Tagged(tag_field, variants):
            cls = dict(variants).get(value.get(tag_field, variants[0][0] if len(variants) == 1 else None))
            return Anything() if cls is None or has_newer_second_tag(cls, value) else Object(cls)
        case Chosen(cls):
            return Anything() if cls.__unknown__(value) is not None else node_of(cls.__choose__(value))
        case AnyOf(options):
            return next((option for option in options if kind_of(value) in kinds(option)), Anything())
        case other:
            return other


@functools.cache
def union_names() -> dict[Node, str]:
    versions = [version for version in (1, 2) if version_is_here(version)]
    nodes = {bare(node_of(hint)): name for version in versions for name, hint in types(version).items()}
    return {node: name for node, name in nodes.items() if isinstance(node, Tagged | Chosen)}


@functools.cache
def field_name(cls: type[msgspec.Struct], field: Field) -> str:
    """A field by the class that first has it, and its name on the wire."""
    owner = next(base for base in reversed(cls.__mro__) if field.name in inspect.get_annotations(base))
    return f"{owner.__name__}.{field.wire}"


def where(hint: Any, value: Json, path: Sequence[str | int], whole: str = WHOLE) -> str:
    """A place in an instance, in terms of types: the last field on the way there."""
    node, found = node_of(hint), whole
    for key in path:
        while isinstance(node := bare(node), Tagged | Chosen | AnyOf):
            option = meant(node, value) if kind_of(value) in kinds(node) else Anything()
            if key in tag_of_variant(option) or (isinstance(node, Tagged) and key == node.tag_field):
                return union_names().get(node, found)
            node = option
        match node:
            case Object(cls) if field := next((field for field in fields_of(cls) if field.wire == key), None):
                node, found = field.node, field_name(cls, field)
            case ListOf(item) | MapOf(item):
                node = item
            case _:
                return found
        if not isinstance(value, dict | list) or (isinstance(value, dict) and key not in value):
            return found
        value = value[key]
    return found


def with_(container: Json, key: Any, value: Json) -> Json:
    changed = container.copy()
    changed[key] = value
    return changed


def without(container: Json, key: Any) -> Json:
    changed = container.copy()
    del changed[key]
    return changed
