"""Checks: functions that take a value for a field and return what the field holds, or raise `Misfit`.

They are made from the same tree of annotations that our tolerant reader uses (`schema.hints`). A check takes what JSON
gives and what a program gives: plain dictionaries become models, and models stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import msgspec

from accord.compat.models.invalid import Misfit, Place, kind
from accord.schema import hints
from accord.schema.hints import Node

Check = Callable[[Any], Any]


class ModelNamed(msgspec.Struct, frozen=True):
    """The model with this name, where it stands for no type of ours."""

    name: str


class Home(Protocol):
    """Where the models of our types are found."""

    def get(self, name: str) -> Any:
        """The model with this name."""
        ...

    def model_for(self, cls: type[msgspec.Struct]) -> Any:
        """The model that stands for this type inside another one."""
        ...

    def other_than(self, cls: type[msgspec.Struct]) -> Any:
        """The model of a variant that a union with this one does not know; None if such a value is an error."""
        ...


def check_of(node: Node | ModelNamed, home: Home) -> Check:
    """The check for values of this type."""
    match node:
        case ModelNamed(name):
            named: Check = home.get(name).model_take
            return named
        case hints.Scalar():
            return _scalar(node)
        case hints.OneWord():
            return _word(node)
        case hints.ListOf(item, skip_invalid):
            return _list(check_of(item, home), skip_invalid=skip_invalid)
        case hints.MapOf(value):
            return _map(check_of(value, home))
        case hints.Object(cls):
            taking: Check = home.model_for(cls).model_take
            return taking
        case hints.Tagged():
            return _tagged(node, home)
        case hints.Chosen():
            return _chosen(node, home)
        case hints.AnyOf(options):
            return _first_of([check_of(option, home) for option in options])
        case hints.Named(_, inner):
            return check_of(inner, home)
        case _:
            return _anything


def _anything(value: Any) -> Any:
    return value


def _scalar(node: hints.Scalar) -> Check:
    check = _SCALARS[node.type]
    least, most, shortest = node.least, node.most, node.shortest
    if least is None and most is None and shortest is None:
        return check

    def bounded(value: Any) -> Any:
        value = check(value)
        if least is not None and value < least:
            raise Misfit(f"must be at least {least}, got {value}")
        if most is not None and value > most:
            raise Misfit(f"must be at most {most}, got {value}")
        if shortest is not None and len(value) < shortest:
            raise Misfit(f"must have at least {shortest} characters")
        return value

    return bounded


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if hasattr(value, "unicode_string"):  # a URL of pydantic's
        return str(value)
    raise Misfit(f"must be a string, got {kind(value)}")


def _integer(value: Any) -> int:
    if isinstance(value, int):
        return int(value)
    if (isinstance(value, float) and value.is_integer()) or (isinstance(value, str) and value.strip("+-").isdigit()):
        return int(value)
    raise Misfit(f"must be an integer, got {kind(value)}")


def _number(value: Any) -> float:
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
    raise Misfit(f"must be a number, got {kind(value)}")


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in (0, 1, "true", "false"):
        return value in (1, "true")
    raise Misfit(f"must be true or false, got {kind(value)}")


def _null(value: Any) -> None:
    if value is not None:
        raise Misfit(f"must be null, got {kind(value)}")


_SCALARS: dict[type, Check] = {
    str: _text,
    int: _integer,
    float: _number,
    bool: _truth,
    type(None): _null,
}


def _word(node: hints.OneWord) -> Check:
    known = frozenset(node.known)
    if node.open:
        return _text

    def check(value: Any) -> Any:
        if isinstance(value, str) and value in known:
            return value
        raise Misfit(f"must be one of {', '.join(map(repr, node.known))}, got {value!r:.60}")

    return check


def _list(item: Check, *, skip_invalid: bool) -> Check:
    def check(value: Any) -> Any:
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise Misfit(f"must be a list, got {kind(cast('object', value))}")
        read: list[Any] = []
        problems: list[tuple[Place, str]] = []
        for at, each in enumerate(value):
            try:
                read.append(item(each))
            except Misfit as misfit:
                if not skip_invalid:
                    problems += misfit.at(at)
        if problems:
            raise Misfit.of(problems)
        return read

    return check


def _map(of: Check) -> Check:
    def check(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Misfit(f"must be an object, got {kind(value)}")
        read: dict[str, Any] = {}
        for key, each in cast("Mapping[str, Any]", value).items():
            try:
                read[key] = of(each)
            except Misfit as misfit:
                raise Misfit.of(misfit.at(key)) from None
        return read

    return check


def _tagged(node: hints.Tagged, home: Home) -> Check:
    models = {tag: home.model_for(cls) for tag, cls in node.variants}
    other = home.other_than(node.variants[0][1])
    takers = {model: model.model_take for model in models.values()}
    tag_name = home.model_for(node.variants[0][1]).model_name_of(node.tag_field)

    def check(value: Any) -> Any:
        taker = takers.get(type(value))
        if taker is not None:
            return value
        if value.__class__ is not dict and not isinstance(value, Mapping):
            return _first_of([*takers.values(), *([other.model_take] if other else [])])(value)
        given = cast("Mapping[str, Any]", value)
        tag = given.get(node.tag_field, given.get(tag_name))
        model = models.get(tag, other) if isinstance(tag, str) else None
        if model is None:
            raise Misfit(f"must be one of {', '.join(map(repr, models))}, got {tag!r:.60}", (node.tag_field,))
        return model.model_take(value)

    return check


def _chosen(node: hints.Chosen, home: Home) -> Check:
    either = _first_of([check_of(variant, home) for variant in node.variants])
    made: dict[Any, Check] = {}

    def check(value: Any) -> Any:
        chosen = node.cls.__choose__(value)
        if chosen is None or not isinstance(value, (dict, list)):
            return either(value)
        if chosen not in made:
            made[chosen] = check_of(hints.node_of(chosen), home)
        try:
            return made[chosen](value)
        except Misfit:
            return either(value)

    return check


def _first_of(checks: list[Check]) -> Check:
    def check(value: Any) -> Any:
        problems: list[tuple[Place, str]] = []
        for each in checks:
            try:
                return each(value)
            except Misfit as misfit:
                problems += misfit.problems
        raise Misfit.of(problems or [((), f"no variant fits, got {kind(value)}")])

    return check
