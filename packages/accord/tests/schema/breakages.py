"""Instances broken at one place, and what must come of it.

What must come of it is worked out from the marks, from the broken place outwards, without any code of the tolerant
reader: a bad value spoils what holds it, until something on the way forgives it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from accord.schema import legacy
from accord.schema.base import Mark
from accord.schema.type_tree import (
    AnyOf,
    Anything,
    Chosen,
    Field,
    ListOf,
    MapOf,
    Node,
    Object,
    OneWord,
    Scalar,
    Tagged,
    fields_of,
    node_of,
)
from tests.schema.meanings import empty_of
from tests.schema.nodes import (
    UNKNOWN_WORD,
    WHOLE,
    Json,
    bare,
    field_name,
    holds_together,
    kind_of,
    kinds,
    meant,
    strange_variant,
    tag_of_variant,
    union_names,
    with_,
    without,
)

UNKNOWN_KEY = "xAccordUnknown"
SURROUNDINGS = 5
"""How many holders around a place say how it can go wrong there: see `_Place.shape`."""


@dataclass(frozen=True)
class Becomes:
    """The value is read, and then means this."""

    value: Json


@dataclass(frozen=True)
class Refused:
    """The value is an error, at this path."""

    path: str


@dataclass(frozen=True)
class Broken:
    """An instance, changed at one place."""

    how: str
    at: str
    where: str
    """The same place in terms of types: a field, a union or a class."""
    value: Json
    outcome: Becomes | Refused

    def __str__(self) -> str:
        return f"{self.how} at {self.at}: {self.value!r:.500}"


Order = Callable[[list[Any]], Iterable[Any]]


def breakages(hint: Any, value: Json, seen: set[object] | None = None, order: Order = iter) -> Iterator[Broken]:
    """This instance with one thing changed, for every place and everything that can be wrong there.

    With `seen`, places that the same fields lead to are broken only once. `order` says which places come first, and
    which changes of each.
    """
    for place in order(list(_places(_Place(node_of(hint), value)))):
        if seen is not None:
            if (shape := place.shape) in seen:
                continue
            seen.add(shape)
        for change in order(list(_changes(place))):
            if (found := _settled(place, *change)) is not None:
                yield found


def has_strange_choice(hint: Any, value: Json) -> bool:
    """Whether something in it is kept by a `Choice` as `Unknown`; our JSON Schema does not speak of that."""
    return any(
        isinstance(node := bare(place.node), Chosen) and isinstance(meant(node, place.value), Anything)
        for place in _places(_Place(node_of(hint), value))
    )


@dataclass(frozen=True)
class _Step:
    """From a container to what it holds; a union holds its variant under no key."""

    node: Node
    container: Json
    key: str | int | None = None
    field: Field | None = None


@dataclass(frozen=True)
class _Place:
    node: Node
    value: Json
    steps: tuple[_Step, ...] = ()

    @property
    def path(self) -> str:
        return "$" + "".join(_path_step(step.key) for step in self.steps)

    @property
    def where(self) -> str:
        node = bare(self.node)
        if isinstance(node, Object):
            return node.cls.__name__
        if (name := union_names().get(node)) is not None:
            return name
        fields = [(step.node.cls, step.field) for step in self.steps if step.field and isinstance(step.node, Object)]
        return field_name(*fields[-1]) if fields else WHOLE

    @property
    def shape(self) -> object:
        """The place in terms of types, as far outwards as what comes of a breakage may depend on it."""
        owners = [(step.node.cls, step.key) if isinstance(step.node, Object) else step.node for step in self.steps]
        return (kind_of(self.value), self.node, *owners[-SURROUNDINGS:])

    @property
    def is_variant(self) -> bool:
        return bool(self.steps) and self.steps[-1].key is None


def _path_step(key: str | int | None) -> str:
    return "" if key is None else f"[{key}]" if isinstance(key, int) else f".{key}"


def _places(place: _Place) -> Iterator[_Place]:
    yield place
    node, value = bare(place.node), place.value

    def inner(node: Node, value: Json, step: _Step) -> Iterator[_Place]:
        return _places(_Place(node, value, (*place.steps, step)))

    match node:
        case ListOf(item):
            for index, each in enumerate(value):
                yield from inner(item, each, _Step(node, value, index))
        case MapOf(item):
            for key, each in value.items():
                yield from inner(item, each, _Step(node, value, key))
        case Object(cls):
            for field in fields_of(cls):
                if field.wire in value:
                    yield from inner(field.node, value[field.wire], _Step(node, value, field.wire, field))
        case Tagged() | Chosen() | AnyOf():
            yield from inner(meant(node, value), value, _Step(node, value))


KEPT, BAD, EMPTY = "kept", "bad", "empty"


@dataclass(frozen=True)
class _Effect:
    """What a change does at its own place: the value is kept and means `means`, or is bad, or counts for nothing."""

    word: str
    means: Json = None
    path: str = ""


def _kept(means: Json) -> _Effect:
    return _Effect(KEPT, means)


def _bad(path: str = "") -> _Effect:
    return _Effect(BAD, path=path)


_Change = tuple[str, Json, _Effect]

WRONG = (True, 7, 1.5, "text", ["item"], {"key": "value"})


def _changes(place: _Place) -> Iterator[_Change]:
    """What can be changed at this very place."""
    node, value = bare(place.node), place.value
    if not place.is_variant:
        yield from _other_values(place, node, value)
        if isinstance(node, Object):
            for tag_field in tag_of_variant(node):
                yield "missing tag", without(value, tag_field), _kept(value)
                yield "another tag", {**value, tag_field: UNKNOWN_WORD}, _kept(value)
    match node:
        case Object(cls):
            yield from _changed_objects(cls, value, place)
        case Tagged(tag_field, variants, is_open, every):
            strange = {**value, tag_field: UNKNOWN_WORD}
            yield "unknown tag", strange, _kept(strange) if is_open else _bad(f".{tag_field}")
            for name in every:
                yield f"unknown tag without {name}", without(strange, name), _bad(f".{name}")
            yield "tag of another kind", {**value, tag_field: 7}, _bad(f".{tag_field}")
            if variants[1:]:
                yield "missing tag", without(value, tag_field), _bad(f".{tag_field}")
            elif value[tag_field] == variants[0][0]:  # the only one
                yield "missing tag", without(value, tag_field), _kept(value)
        case Chosen() if strange := strange_variant(node):
            yield "unknown variant", {**strange, "depth": [3]}, _kept({**strange, "depth": [3]})


def _other_values(place: _Place, node: Node, value: Json) -> Iterator[_Change]:
    possible = kinds(node)
    for wrong in WRONG:
        if kind_of(wrong) not in possible:
            yield f"{kind_of(wrong)} for {' or '.join(sorted(possible - {'null'}))}", wrong, _bad()
    if value is not None:
        yield "null", None, _effect_of_null(place, possible)
    option = bare(meant(node, value))
    only_option = len(possible - {"null"}) == 1 or option == node
    match option:
        case Scalar(type=kind) if kind is int and type(value) is int and abs(value) < 2**53:
            yield "integral float", float(value), _kept(value)
        case Scalar(type=kind, shortest=shortest) if kind is str and only_option:
            yield "empty string", "", _bad() if shortest else _kept("")
        case ListOf():
            yield "empty list", [], _kept([])
        case OneWord(_, is_open, read_open) if only_option:
            yield "unknown word", UNKNOWN_WORD, _kept(UNKNOWN_WORD) if is_open or read_open else _bad()
    match option:
        case Scalar(least=least, most=most) if only_option:
            if least is not None:
                yield "too small", int(least) - 1, _bad()
            if most is not None:
                yield "too large", int(most) + 1, _bad()


def _effect_of_null(place: _Place, possible: set[str]) -> _Effect:
    field = place.steps[-1].field if place.steps else None
    if field is not None and Mark.DEFAULT_ON_NULL in field.marks:
        return _Effect(EMPTY)
    return _kept(None) if "null" in possible else _bad()


def _changed_objects(cls: type[msgspec.Struct], value: dict[str, Json], place: _Place) -> Iterator[_Change]:
    yield "unknown key", {UNKNOWN_KEY: {"x": [1]}, **value}, _kept(value)
    for field in fields_of(cls):
        if field.required and field.wire in value:
            yield "missing", without(value, field.wire), _bad(f".{field.wire}")
    for old, new in legacy.RENAMED_FIELDS.get(cls.__name__, {}).items():
        if new in value:
            yield "older name", {old: value[new], **without(value, new)}, _kept(value)


def _settled(place: _Place, how: str, changed: Json, effect: _Effect) -> Broken | None:
    """What comes of this change, from its place outwards; None where the change makes another variant be chosen."""
    at, where = place.path, place.where
    for step in reversed(place.steps):
        container = changed if step.key is None else with_(step.container, step.key, changed)
        found = _through_union(step, container, effect) if step.key is None else _through_container(step, effect)
        if found is None:
            return None
        changed, effect = container, found
    outcome = Refused(f"${effect.path}") if effect.word == BAD else Becomes(effect.means)
    return Broken(how, at, where, changed, outcome)


def _through_union(step: _Step, changed: Json, effect: _Effect) -> _Effect | None:
    match step.node:
        case Tagged(open=True) if isinstance(meant(step.node, changed), Anything):
            return _kept(changed)
        case Chosen(cls):
            chosen = cls.__choose__(changed)
            if chosen is Any:
                return _kept(changed)
            if chosen != cls.__choose__(step.container):
                return None
            if effect.word == BAD and (unknown := cls.__unknown__(changed)) is not None:
                return _kept(unknown.raw)
        case AnyOf(options) if effect.word == BAD and kind_of(changed) in ("list", "object"):
            if sum(kind_of(changed) in kinds(option) for option in options) > 1:
                return None
    return effect


def _through_container(step: _Step, effect: _Effect) -> _Effect:
    assert step.key is not None
    field = step.field
    if effect.word == BAD and field is not None and Mark.DEFAULT_ON_ERROR in field.marks:
        effect = _Effect(EMPTY)
    if effect.word == BAD:
        if isinstance(step.node, ListOf) and step.node.skip_invalid:
            return _kept(without(step.container, step.key))
        return replace(effect, path=_path_step(step.key) + effect.path)
    if effect.word == KEPT:
        means = with_(step.container, step.key, effect.means)
    elif field is not None and field.required:
        means = with_(step.container, step.key, empty_of(field))
    else:
        means = without(step.container, step.key)
    if isinstance(step.node, Object) and not holds_together(step.node.cls, means):
        return _bad()
    return _kept(means)
