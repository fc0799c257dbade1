"""Converts a value to the class of another version, field by field, so that nothing is lost.

A field's value goes to the field of the same name, or of the name in a table, and is converted in the same way. A value
is refused if the target has no such field, or if it does not fit the type of the field. Only an absent value may be
written differently:

| source | target: a patch | target: a list | target: any other field |
|---|---|---|---|
| left out (`UNSET`, or None where that is the same) | left out | left out | left out |
| `null` in a patch: cleared | `null` | an empty list | refused |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET

from accord.errors import ConversionError
from accord.schema.base import Model, Unknown, tag_of, unknown_members, with_unknown_members
from accord.schema.type_tree import (
    NULL,
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
)

Step = Callable[[Any], Any]


class Several(list[Any]):
    """The values that one value becomes, in order, where the other version needs several."""


class Way:
    """The conversion to one version: a table with a function for each class of the other version."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.steps: dict[type, Step] = {}
        self.names: dict[type, Mapping[str, str]] = {}
        """For some classes: the names of fields in the target, each with the name in the source."""

    def step(self, *classes: type) -> Callable[[Step], Step]:
        """Convert values of these classes with the decorated function."""

        def add(function: Step) -> Step:
            self.steps.update(dict.fromkeys(classes, function))
            return function

        return add

    def refusal(self, cls: type, reason: str) -> None:
        """Refuse values of this class, for this reason."""
        self.steps[cls] = lambda _: self.refuse(cls.__name__, reason)

    def pair(self, cls: type, target: type) -> None:
        """Convert values of this class field by field: they differ from the target's by names only."""
        self.steps[cls] = lambda value: self.carry(value, target)

    def refuse(self, what: str, reason: str) -> NoReturn:
        """Raise the error for a value that cannot be converted, with the reason."""
        raise ConversionError(what, self.version, reason)

    # Values

    def one(self, value: Any) -> Any:
        """Convert a value that becomes one value; a value that belongs to no version stays the same."""
        found = self.all(value)
        if isinstance(value, list):
            return found
        if len(found) != 1:
            self.refuse(type(value).__name__, f"it becomes {len(found)} values, and one is needed")
        return found[0]

    def all(self, value: Any) -> list[Any]:
        """Convert a value, or each value of a list; each may become any number of values."""
        kind: type = value.__class__
        if kind is list:
            return [each for item in value for each in self.all(item)]
        step = self.steps.get(kind)
        found = value if step is None else step(value)
        return found if isinstance(found, Several) else [found]

    def carry(self, value: msgspec.Struct, target: type, used: tuple[str, ...] = (), **given: Any) -> Any:
        """Convert a value field by field; the fields that were `used` are skipped, and those `given` are used
        unchanged.
        """
        left = {field.name: field for field in fields_of(type(value)) if field.name not in used}
        made = {name: said for name, said in given.items() if said is not UNSET}
        names = self.names.get(value.__class__, {})
        for field in fields_of(target):
            source = left.pop(names.get(field.name, field.name), None)
            if source is not None and field.name not in given:
                self._carry_field(value, source, field, made)
            if field.name in made:
                self._check(f"{type(value).__name__}.{(source or field).wire}", field, made[field.name])
            elif field.required:
                self.refuse(type(value).__name__, f"it needs {field.wire}, which the value lacks")
        for source in left.values():
            if getattr(value, source.name) not in (None, UNSET, [], {}):
                self.refuse(f"{type(value).__name__}.{source.wire}", "it has no such field")
        try:
            return _with_unknown_members_of(value, target(**made))
        except ValueError as error:  # the class checks its fields together
            self.refuse(type(value).__name__, str(error))

    def _carry_field(self, value: msgspec.Struct, source: Field, field: Field, made: dict[str, Any]) -> None:
        said = getattr(value, source.name)
        if said is UNSET or (said is None and not source.unset):
            if source.required:
                made[field.name] = said
        elif said is None:
            made[field.name] = self._cleared(f"{type(value).__name__}.{source.wire}", field)
        else:
            made[field.name] = self._inside(field.node, said)

    def offered(self, marker: Model | None) -> bool:
        """Whether a capability, an object here and a boolean there, is offered."""
        if marker is not None and marker.meta is not None:
            what = f"{type(marker).__name__}._meta"
            self.refuse(what, "the capability is a boolean there, which has no _meta")
        return marker is not None

    def _check(self, what: str, field: Field, said: Any) -> None:
        if not fits(field.node, said):
            self.refuse(what, f"{said!r:.60} does not fit the type of the field")

    def _cleared(self, what: str, field: Field) -> Any:
        if field.unset:
            return None
        if _is_list(field.node):
            return []
        return self.refuse(what, "the field cannot be cleared")

    def _inside(self, node: Node, said: Any) -> Any:
        match _bare(node):
            case Object(cls) if isinstance(said, bool):  # a capability, which is an object there
                return cls() if said else None
            case Scalar(type) if type is bool and isinstance(said, Model):
                return self.offered(said)
            case Anything() | MapOf(Anything()):
                return said
            case MapOf() if isinstance(said, dict):
                return {key: self.one(each) for key, each in said.items()}  # pyright: ignore[reportUnknownVariableType]
            case _:
                return self.one(said)


def _with_unknown_members_of(value: msgspec.Struct, made: msgspec.Struct) -> msgspec.Struct:
    """Return the converted value with those unknown members of the original that its own type does not know either."""
    if not (unknown := unknown_members(value)):
        return made
    known = {field.wire for field in fields_of(type(made))}
    return with_unknown_members(made, {name: said for name, said in unknown.items() if name not in known})


def fits(node: Node, value: Any) -> bool:
    """Whether a value fits this type. Any word fits an open set; a closed set must have it."""
    match node:
        case Named(_, inner):
            return fits(inner, value)
        case Scalar():
            return _scalar_fits(node, value)
        case OneWord(known, is_open):
            return isinstance(value, str) and (is_open or value in known)
        case ListOf(item):
            return isinstance(value, list) and all(fits(item, each) for each in value)  # pyright: ignore[reportUnknownVariableType]
        case MapOf(inner):
            return isinstance(value, dict) and all(fits(inner, each) for each in value.values())  # pyright: ignore[reportUnknownVariableType]
        case Object(cls):
            return isinstance(value, cls)
        case Tagged() | Chosen() if isinstance(value, Unknown):
            return _is_unknown_there(node, value)
        case Tagged(_, variants):
            return any(value.__class__ is cls for _, cls in variants)
        case Chosen(_, options) | AnyOf(options):
            return any(fits(option, value) for option in options)
        case _:
            return True


def _scalar_fits(scalar: Scalar, value: Any) -> bool:
    kind: type = value.__class__
    if kind is not scalar.type and not (scalar.type is float and kind is int):
        return False
    if kind is str:
        return (scalar.shortest or 0) <= len(value) <= (scalar.longest or len(value))
    return (scalar.least is None or value >= scalar.least) and (scalar.most is None or value <= scalar.most)


def _is_unknown_there(union: Tagged | Chosen, value: Unknown) -> bool:
    """Whether an unknown variant is unknown to this union too: conversion must not give it a meaning."""
    if isinstance(union, Tagged):
        return (
            union.open
            and all(value.tag != tag for tag, _ in union.variants)
            and all(isinstance(value.raw.get(name), str) for name in union.every)
        )
    return all(value.tag != tag_of(option.cls) for option in union.variants if isinstance(option, Object))


def _is_list(node: Node) -> bool:
    return any(isinstance(_bare(option), ListOf) for option in (node.options if isinstance(node, AnyOf) else (node,)))


def _bare(node: Node) -> Node:
    """The type without its name, and without null as an option."""
    match node:
        case Named(_, inner):
            return _bare(inner)
        case AnyOf(options) if len(rest := [option for option in options if option != NULL]) == 1:
            return _bare(rest[0])
        case _:
            return node
