"""The types of models' fields as annotations of Python: what `Field.annotation` tells, and type checkers see."""

from __future__ import annotations

from types import GenericAlias
from typing import Any, Literal, Union

from accord.compat.models.checks import Home, ModelNamed
from accord.schema import hints


def annotation_of(node: hints.Node | ModelNamed, home: Home) -> Any:
    """The annotation for values of this type."""
    match node:
        case ModelNamed(name):
            return home.get(name)
        case hints.Scalar():
            return None if node.type is type(None) else node.type
        case hints.OneWord(known):
            return str if node.open else Literal[known]
        case hints.ListOf(item):
            return GenericAlias(list, (annotation_of(item, home),))
        case hints.MapOf(value):
            return GenericAlias(dict, (str, annotation_of(value, home)))
        case hints.Object(cls):
            return home.model_for(cls)
        case hints.Tagged(_, variants):
            other = home.other_than(variants[0][1])
            return _union([*(home.model_for(cls) for _, cls in variants), *([other] if other else [])])
        case hints.Chosen(_, variants) | hints.AnyOf(variants):
            return _union([annotation_of(variant, home) for variant in variants])
        case hints.Named(_, inner):
            return annotation_of(inner, home)
        case _:
            return Any


def _union(members: list[Any]) -> Any:
    return Any if Any in members else Union[tuple(members)]  # noqa: UP007 it is made at run time
