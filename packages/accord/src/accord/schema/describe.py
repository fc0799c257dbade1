"""Writes the protocol's types as JSON Schema, with their official names.

It contains everything that the official schema files contain, in the same form: marks as `x-deserialize-...`, the
method and the handling side of a message as `x-method` and `x-side`. So `accord schema` is useful beside the official
files, and one reader of such files can compare the two.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, get_origin

import msgspec

from accord.schema.base import Json, Mark, Model, Notification, Request, Shape, Unknown, tag_of
from accord.schema.codec import convert, plain
from accord.schema.methods import Methods, methods
from accord.schema.type_tree import (
    AnyOf,
    Anything,
    Chosen,
    Field,
    Foreign,
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

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_FORMATS: dict[tuple[float | None, float | None], str] = {
    (0, 2**16 - 1): "uint16",
    (0, 2**32 - 1): "uint32",
    (1, 2**32 - 1): "uint32",
    (1, 2**16 - 1): "uint16",
    (0, None): "uint64",
    (-(2**31), 2**31 - 1): "int32",
    (-(2**63), 2**63 - 1): "int64",
}
_JSON_TYPES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_ABSTRACT = (Shape, Model, Request, Notification)


def json_schema(version: int, *, unstable: bool = False) -> dict[str, Json]:
    """The JSON Schema of one version of the protocol: a message is one of the definitions under `$defs`."""
    return _Description(version, unstable=unstable).document()


class _Description:
    def __init__(self, version: int, *, unstable: bool) -> None:
        self.version = version
        self.unstable = unstable
        self.methods = methods(version)
        namespace = importlib.import_module(f"accord.schema.v{version}")
        public = {name: getattr(namespace, name) for name in dir(namespace) if name[0].isupper()}
        self.classes = {name: value for name, value in public.items() if _is_class(value)}
        self.aliases = {name: node_of(value) for name, value in public.items() if name not in self.classes}
        self.names: dict[Node, str] = {
            node: name for name, node in self.aliases.items() if not isinstance(node, Anything | Named | Scalar)
        }
        self.roles = {
            name: {"x-method": row.name, "x-side": row.to}
            for row in self.methods
            if unstable or not row.unstable
            for name in (row.message.__name__, _name_of(row.result))
            if name
        }

    def document(self) -> dict[str, Json]:
        definitions = {
            **{name: self.definition(cls) for name, cls in self.classes.items() if self.shown(cls)},
            **{name: self.alias(node) for name, node in self.aliases.items()},
        }
        for name, role in self.roles.items():
            if name in definitions:
                definitions[name].update(role)
        kept = self.reachable(definitions)
        return {
            "$schema": DIALECT,
            "title": f"Agent Client Protocol, version {self.version}",
            "anyOf": [
                {"title": row.name, "$ref": f"#/$defs/{row.message.__name__}"}
                for row in self.methods
                if row.message.__name__ in kept
            ],
            "$defs": {name: kept[name] for name in sorted(kept)},
        }

    def reachable(self, definitions: dict[str, dict[str, Json]]) -> dict[str, dict[str, Json]]:
        """Return the definitions that a message can contain; the stable document leaves out what only unstable ones
        use.
        """
        waiting = [name for name, definition in definitions.items() if "x-method" in definition]
        waiting += ["Error", "RequestId", "ExtRequest", "ExtResponse", "ExtNotification"]
        kept: dict[str, dict[str, Json]] = {}
        while waiting:
            name = waiting.pop()
            if name not in kept and name in definitions:
                kept[name] = definitions[name]
                waiting += _references(definitions[name])
        return kept

    def shown(self, cls: type) -> bool:
        if cls in _ABSTRACT or (cls.__unstable__ and not self.unstable):  # type: ignore[attr-defined]
            return False
        return self.payload(cls) is cls

    def payload(self, cls: type) -> type:
        """Return the class that this one adds only a tag to; other classes as they are."""
        base = cls.__bases__[0]
        adds_nothing = base not in _ABSTRACT and not base.__name__.startswith("_") and _names(cls) == _names(base)
        return base if adds_nothing and tag_of(base) is None and tag_of(cls) is not None else cls

    # Types

    def definition(self, cls: type[msgspec.Struct]) -> dict[str, Json]:
        described = self.object(cls)
        if (tag := tag_of(cls)) is not None:
            tag_field = str(cls.__struct_config__.tag_field)
            described["properties"] = {tag_field: {"type": "string", "const": tag}, **described["properties"]}
        if cls.__doc__:
            described = {"description": " ".join(cls.__doc__.split("\n\n")[0].split()), **described}
        return described

    def object(self, cls: type[msgspec.Struct]) -> dict[str, Json]:
        if tag_of(cls) is None and (variants := self.variants_of(cls)) is not None:
            return self.tagged(variants)
        fields = [field for field in fields_of(cls) if self.unstable or Mark.UNSTABLE not in field.marks]
        described: dict[str, Json] = {
            "type": "object",
            "properties": {field.wire: self.field(field) for field in fields},
        }
        if required := [field.wire for field in fields if field.required]:
            described["required"] = required
        return described

    def variants_of(self, cls: type) -> Tagged | None:
        for row in self.methods:
            if row.message is cls and row.params is not cls:
                return cast("Tagged", node_of(row.params))
        return None

    def field(self, field: Field) -> dict[str, Json]:
        described = self.node(field.node)
        if field.default is not None and _says_something(default := field.default()):
            described["default"] = plain(default)
        for mark in (Mark.DEFAULT_ON_ERROR, Mark.DEFAULT_ON_NULL):
            if mark in field.marks:
                described[f"x-deserialize-{mark.value}"] = True
        if _skips_invalid(field.node):
            described["x-deserialize-skip-invalid-items"] = True
        return described

    def alias(self, node: Node) -> dict[str, Json]:
        return self.inner(node.node if isinstance(node, Named) else node)

    def node(self, node: Node) -> dict[str, Json]:
        """A type where it is used: by its name, if it has one."""
        if (name := self.name(node)) is not None:
            return {"$ref": f"#/$defs/{name}"}
        return self.inner(node)

    def name(self, node: Node) -> str | None:
        match node:
            case Named(name, _):
                return name
            case Object(cls):
                return self.payload(cls).__name__
            case Chosen(cls):
                return cls.__name__
            case OneWord(known):
                return self.names.get(OneWord(known)) or self.names.get(node)
            case _:
                return self.names.get(node)

    def inner(self, node: Node) -> dict[str, Json]:
        match node:
            case Anything() | Foreign():
                return {}
            case Scalar():
                return _scalar(node)
            case OneWord(known, is_open, read_open):
                other = [{"title": "other", "type": "string"}] if is_open or read_open else []
                return {"anyOf": [*({"type": "string", "const": word} for word in known), *other]}
            case ListOf(item):
                return {"type": "array", "items": self.node(item)}
            case MapOf(value):
                return {"type": "object", "additionalProperties": self.node(value) or True}
            case Object(cls):
                return {"anyOf": [self.node(node)]} if cls.__name__ not in self.names.values() else self.object(cls)
            case Tagged():
                return self.tagged(node)
            case Chosen(_, variants):
                return {"anyOf": [self.variant(variant) for variant in variants if self.has(variant)]}
            case AnyOf(options):
                return {"anyOf": [self.node(option) for option in options]}
            case Named():
                return self.node(node)

    def has(self, node: Node) -> bool:
        return not (isinstance(node, Object) and cast("type[Shape]", node.cls).__unstable__ and not self.unstable)

    def tagged(self, union: Tagged) -> dict[str, Json]:
        variants = [self.variant(Object(cls)) for _, cls in union.variants if self.has(Object(cls))]
        if not union.open:
            return {"anyOf": variants}
        tag = union.tag_field
        known = [{"properties": {tag: variant["properties"][tag]}, "required": [tag]} for variant in variants]
        texts = [tag, *union.every]
        other = {
            "title": "other",
            "type": "object",
            "properties": {name: {"type": "string"} for name in texts},
            "required": texts,
            "not": {"anyOf": known},
        }
        return {"anyOf": [*variants, other]}

    def variant(self, node: Node) -> dict[str, Json]:
        if isinstance(node, Anything):
            return {"title": "Other"}
        if not isinstance(node, Object) or (tag := tag_of(node.cls)) is None:
            return self.node(node)
        tag_field = str(node.cls.__struct_config__.tag_field)
        return {
            "type": "object",
            "properties": {tag_field: {"type": "string", "const": tag}},
            "required": [tag_field],
            "allOf": [self.node(second_union(node.cls) or node)],
        }


class Inlined(_Description):
    """Describes a type with all its parts inline, as pydantic needs it: it knows nothing of our definitions."""

    def __init__(self) -> None:  # of no version: the types that it is asked for
        self.unstable = True
        self.methods = Methods(iter(()))
        self.names = {}
        self._within: list[type] = []

    def name(self, node: Node) -> str | None:  # noqa: ARG002
        return None

    def inner(self, node: Node) -> dict[str, Json]:
        match node:
            case Named(_, inside):
                return self.inner(inside)
            case Object(cls):
                return self.variant(node) if cls not in self._within else {}
            case _:
                return super().inner(node)

    def variant(self, node: Node) -> dict[str, Json]:
        if not isinstance(node, Object):
            return super().variant(node)
        self._within.append(node.cls)
        try:
            return {"title": node.cls.__name__, **self.definition(node.cls)}
        finally:
            self._within.pop()


def _is_class(value: object) -> bool:
    return get_origin(value) is None and isinstance(value, type) and issubclass(value, Shape)


def _names(cls: type) -> tuple[str, ...]:
    return cast("tuple[str, ...]", getattr(cls, "__struct_fields__", ()))


def _name_of(hint: Any) -> str | None:
    node = node_of(hint) if hint is not None else None
    match node:
        case Object(cls):
            return cls.__name__
        case Named(name, _):
            return name
        case _:
            return "CreateElicitationResponse" if isinstance(node, Tagged) else None


def _scalar(scalar: Scalar) -> dict[str, Json]:
    described: dict[str, Json] = {"type": _JSON_TYPES[scalar.type]}
    if (word := _FORMATS.get((scalar.least, scalar.most))) is not None:
        described["format"] = word
    if scalar.least is not None and (scalar.type is float or scalar.least >= 0):
        described["minimum"] = scalar.least
    if scalar.most is not None and (scalar.type is float or scalar.most == 2**16 - 1):
        described["maximum"] = scalar.most
    if scalar.shortest is not None:
        described["minLength"] = scalar.shortest
    if scalar.longest is not None:
        described["maxLength"] = scalar.longest
    return described


def _says_something(default: Any) -> bool:
    return default is True or (isinstance(default, int | float | str) and default is not False)


def _skips_invalid(node: Node) -> bool:
    match node:
        case ListOf(_, skip_invalid):
            return skip_invalid
        case AnyOf(options):
            return any(_skips_invalid(option) for option in options)
        case _:
            return False


def _references(described: Json) -> list[str]:
    match described:
        case {"$ref": str(reference)}:
            return [reference.rsplit("/", 1)[-1]]
        case dict():
            return [name for value in cast("dict[str, Json]", described).values() for name in _references(value)]
        case list():
            return [name for value in cast("list[Json]", described) for name in _references(value)]
        case _:
            return []


# The protocol's types as fields of pydantic models and as bodies of FastAPI. Reading uses the same tolerant reader as
# the wire, whose errors have the path; writing gives the wire's JSON; and the JSON Schema has all types inline.


def schema_for_pydantic(wanted: Any) -> CoreSchema:
    """The schema by which pydantic reads and writes a type of the protocol: a class, or a union."""
    from pydantic_core import core_schema  # pydantic, which is no part of Accord, has asked

    node = node_of(wanted)
    kinds: tuple[type[object], ...] = (wanted,)
    if isinstance(node, Tagged):
        kinds = (Unknown, *(cls for _, cls in node.variants))
    elif isinstance(node, Chosen):
        kinds = (Unknown, *(variant.cls for variant in node.variants if isinstance(variant, Object)))

    def read(value: Any) -> Any:
        return value if isinstance(value, kinds) else convert(plain(value), cast("type[Any]", wanted))

    def describe(_schema: CoreSchema, _handler: Callable[[CoreSchema], Any]) -> Json:
        return Inlined().node(node)

    return core_schema.no_info_plain_validator_function(
        read,
        serialization=core_schema.plain_serializer_function_ser_schema(plain),
        metadata={"pydantic_js_functions": [describe]},
    )
