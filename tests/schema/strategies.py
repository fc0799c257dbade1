"""JSON for every type of ours, made from what its annotations say: valid, and broken on purpose.

    types(version)             every type of a version by name, whatever it has
    covering(hint)             a few valid instances that together show every field, variant and word
    instances(hint)            hypothesis: any valid instance
    breakages(hint, value)     every way to break an instance at one place, and what must come of it
    broken(hint)               hypothesis: an instance, broken in one of these ways
    meaning(hint, value)       an instance without what means nothing: two that mean the same are then equal

Nothing here is listed by hand: the walk is over the nodes of `accord.schema.hints`. What must come of a breakage is
worked out from the marks, from the broken place outwards, without any code of the tolerant reader. All choices go
through `Dice`, rolled by hypothesis where a failure should shrink and by `random` where thousands are wanted.
"""

import functools
import importlib
import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field as dataclass_field, replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import assume, strategies as st

from accord.schema import legacy
from accord.schema.base import Mark, Model, Notification, Request, Shape, tag_of
from accord.schema.codec import plain
from accord.schema.hints import (
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
from accord.schema.methods import methods

Json = Any

# Which types there are


def version_is_here(version: int) -> bool:
    try:
        methods(version)
    except LookupError:
        return False
    return True


def each_version() -> list[Any]:
    """Parameters for a test over all versions; one that is not there yet is skipped by that very fact."""
    return [
        pytest.param(
            version,
            id=f"v{version}",
            marks=pytest.mark.skipif(not version_is_here(version), reason=f"version {version} is not here yet"),
        )
        for version in (1, 2)
    ]


@functools.cache
def types(version: int) -> dict[str, Any]:
    """Every type of this version, classes and aliases, by its name in the protocol."""
    namespace = importlib.import_module(f"accord.schema.v{version}")
    abstract = (Shape, Model, Request, Notification)
    return {
        name: value
        for name, value in vars(namespace).items()
        if name[0].isupper() and not any(value is base for base in abstract)
    }


# Choices

HALF = "\ud83d"
"""The first half of an emoji that was cut in two."""
UNKNOWN_WORD = "_accord_unknown"
WHOLE = "the whole"
UNKNOWN_KEY = "xAccordUnknown"
ADDRESS = "https://example.com/a"
"""A text that is good everywhere, also where the other side wants a URL."""

TEXTS = ("", ADDRESS, "a", "\x00", "\n\r\t", '"\\/', "é", "漢", "😀", HALF, f"cut {HALF}", "\u2028\ufeff", "x" * 3000)
ALPHABET = "ab /:._-1é漢😀"
KEYS = ("a", "type", "_meta", "sessionId", "", "constructor", "x-y")
INTEGERS = (0, 1, 7, -1, 255, 2**16 - 1, 2**31 - 1, -(2**31), 2**32 - 1, 2**53 - 1, 1 - 2**53, 2**63 - 1, -(2**63))
NUMBERS = (0.0, 0.5, 1, -1.25, -3, 0.1, 1e300, 5e-324, 2**53 - 1)
PLAIN_VALUES = (None, True, False, "", "word", 0, 1, -1, 2**53 - 1, 2**63, 0.0, 0.5, -1e300)

_DRAWN_TEXT = st.one_of(st.sampled_from(TEXTS), st.text(max_size=20))
_DRAWN_KEY = st.one_of(st.sampled_from(KEYS), st.text(max_size=5))
_DRAWN_JSON = st.recursive(
    st.one_of(st.sampled_from(PLAIN_VALUES), _DRAWN_TEXT, st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_DRAWN_KEY, inner, max_size=3)),
    max_leaves=6,
)


class Dice:
    """Where choices come from: `below(n)` gives a number from 0 to n - 1."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self.below = below

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def shuffled(self, options: list[Any]) -> Iterator[Any]:
        left = options.copy()
        while left:
            yield left.pop(self.below(len(left)))

    def key(self) -> str:
        return self.pick(KEYS) if self.chance(50) else self.text()

    def text(self) -> str:
        if self.chance(60):
            return "".join(self.pick(ALPHABET) for _ in range(self.below(6)))
        return self.pick(TEXTS)

    def json(self, depth: int = 0) -> Json:
        match self.below(9 if depth < 3 else 7):
            case 7:
                return [self.json(depth + 1) for _ in range(self.below(4))]
            case 8:
                return {self.key(): self.json(depth + 1) for _ in range(self.below(4))}
            case kind:
                return self.pick(PLAIN_VALUES) if kind < 5 else self.text()


class Drawn(Dice):
    """Dice that hypothesis rolls."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        super().__init__(lambda count: draw(st.integers(0, count - 1)))
        self.draw = draw

    def key(self) -> str:
        return self.draw(_DRAWN_KEY)

    def text(self) -> str:
        return self.draw(_DRAWN_TEXT)

    def json(self, depth: int = 0) -> Json:  # noqa: ARG002
        return self.draw(_DRAWN_JSON)


# Valid instances


@dataclass(frozen=True)
class Maker:
    """Makes valid instances, with or without unstable fields and variants, and variants and words nobody knows.

    Who is pickier than we are about some fields can name texts that those take, and lists that are never empty.
    """

    dice: Dice
    unstable: bool = True
    unknown: bool = True
    texts: Mapping[str, str] = dataclass_field(default_factory=dict)
    filled: frozenset[str] = frozenset()

    def make(self, hint: Any) -> Json:
        return self.of(node_of(hint), 0)

    def of(self, node: Node, depth: int) -> Json:
        dice = self.dice
        match bare(node):
            case Anything():
                return dice.json()
            case Scalar(type=kind) as scalar if kind is str:
                return dice.text() or "x" * (scalar.shortest or 0)
            case Scalar() as scalar:
                return dice.pick(plain_values(scalar))
            case OneWord(known, is_open):
                return UNKNOWN_WORD if is_open and self.unknown and dice.chance(20) else dice.pick(known)
            case ListOf(item):
                return [self.of(item, depth + 1) for _ in range(self.length(depth))]
            case MapOf(value):
                return {dice.key(): self.of(value, depth + 1) for _ in range(self.length(depth))}
            case Object(cls):
                return self.object(cls, depth)
            case Tagged(open=is_open) as union:
                if is_open and self.unknown and dice.chance(10):
                    return {dice.key(): dice.json(), **strange_variant(union)}
                return self.of(dice.pick(variants_of(union, unstable=self.unstable)), depth)
            case Chosen() as choice:
                if self.unknown and (strange := strange_variant(choice)) and dice.chance(10):
                    return {dice.key(): dice.json(), **strange}
                return self.of(dice.pick(variants_of(choice, unstable=self.unstable)), depth)
            case AnyOf(options):
                return self.of(dice.pick(options), depth)
            case other:
                raise NotImplementedError(f"instances of {other}")

    def length(self, depth: int) -> int:
        return self.dice.below(4 if depth < 4 else 2)

    def object(self, cls: type[msgspec.Struct], depth: int) -> Json:
        for _ in range(200):
            made = {
                field.wire: self.field(field, depth + 1)
                for field in shown_fields(cls, unstable=self.unstable)
                if field.required or not self.dice.chance(40 + 10 * min(depth, 4))
            }
            if holds_together(cls, made):
                return {**tag_of_variant(Object(cls)), **made}
        raise AssertionError(f"found no {cls.__name__} that its own check accepts")

    def field(self, field: Field, depth: int) -> Json:
        if field.wire in self.texts and "string" in kinds(field.node):
            return self.texts[field.wire]
        made = self.of(field.node, depth)
        while made == [] and field.wire in self.filled:
            made = self.of(field.node, depth)
        return made


def rolled(seed: object) -> Dice:
    """Dice for thousands of instances; the seed gives them again."""
    return Dice(random.Random(str(seed)).randrange)


@st.composite
def instances(draw: Any, hint: Any, *, unstable: bool = True, unknown: bool = True) -> Json:
    """Any valid instance of this type."""
    return Maker(Drawn(draw), unstable, unknown).make(hint)


def covering(hint: Any, *, unstable: bool = True, unknown: bool = True) -> list[Json]:
    """Valid instances that together show every field, variant and word; the last one has only what must be there."""
    return _Cover(unstable, unknown).of(node_of(hint), 0)


@dataclass(frozen=True)
class _Cover:
    unstable: bool
    unknown: bool

    def of(self, node: Node, depth: int) -> list[Json]:
        match bare(node):
            case Anything():
                return [{"any": [None, 1, "x"]}, "x"]
            case Scalar(type=kind) as scalar:
                return [ADDRESS] if kind is str else [plain_values(scalar)[0]]
            case OneWord(known, is_open):
                return [*known, UNKNOWN_WORD] if is_open and self.unknown else list(known)
            case ListOf(item):
                return [[each] for each in self.of(item, depth + 1)] if depth < 20 else [[]]
            case MapOf(value):
                return [{f"key{index}": each for index, each in enumerate(self.of(value, depth + 1))}]
            case Object(cls):
                return self.object(cls, depth)
            case Tagged(open=is_open) as union:
                strange = [{**strange_variant(union), "depth": 3}] if is_open and self.unknown else []
                return self.variants(union, depth) + strange
            case Chosen() as choice:
                strange = strange_variant(choice) if self.unknown else None
                return self.variants(choice, depth) + ([strange] if strange else [])
            case AnyOf(options):
                return [made for option in options for made in self.of(option, depth)]
            case other:
                raise NotImplementedError(f"instances of {other}")

    def variants(self, union: Tagged | Chosen, depth: int) -> list[Json]:
        return [made for node in variants_of(union, unstable=self.unstable) for made in self.of(node, depth)]

    def object(self, cls: type[msgspec.Struct], depth: int) -> list[Json]:
        shown = {field: self.of(field.node, depth + 1) for field in shown_fields(cls, unstable=self.unstable)}
        full = [
            {field.wire: covers[index % len(covers)] for field, covers in shown.items()}
            for index in range(max(map(len, shown.values()), default=1))
        ]
        least = {field.wire: covers[0] for field, covers in shown.items() if field.required}
        made = [each for value in [*full, least] for each in _held_together(cls, value, shown)]
        return [{**tag_of_variant(Object(cls)), **value} for value in (made if shown else made[:1])]


def _held_together(cls: type[msgspec.Struct], value: dict[str, Json], shown: dict[Field, list[Json]]) -> list[Json]:
    """This value, or what it becomes when one field is another or is left out, so that the class accepts it."""
    if holds_together(cls, value):
        return [value]
    others = [_without(value, field.wire) for field in shown if not field.required and field.wire in value]
    others += [value | {field.wire: cover} for field, covers in shown.items() for cover in covers]
    return [other for other in others if holds_together(cls, other)]


# What nodes say


def bare(node: Node) -> Node:
    while isinstance(node, Named):
        node = node.node
    return node


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


def shown_fields(cls: type[msgspec.Struct], *, unstable: bool = True) -> list[Field]:
    if unstable:
        return list(fields_of(cls))
    stable = [field for field in fields_of(cls) if Mark.UNSTABLE not in field.marks]
    if (second := second_union(cls)) is not None:
        tags = OneWord(tuple(tag for tag, variant in second.variants if not variant.__unstable__))
        stable = [replace(field, node=tags) if field.wire == second.tag_field else field for field in stable]
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


def plain_values(scalar: Scalar) -> list[Json]:
    """Numbers within a type's bounds, the ordinary one first; or both booleans; or null."""
    if scalar.type not in (int, float):
        return [True, False] if scalar.type is bool else [None]
    least, most = scalar.least, scalar.most
    edges = [edge for edge in (least, most) if edge is not None]
    return [
        value
        for value in (*(INTEGERS[2:] if scalar.type is int else NUMBERS[1:]), *edges, 0, 1)
        if (least is None or value >= least) and (most is None or value <= most)
    ]


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


# What instances mean


def meaning(hint: Any, value: Json) -> Json:
    """This instance in one form for all that mean the same.

    Left out are: keys that the type does not have, a null where null and absent are the same, a field that holds its
    default, and the tag of a class that stands alone. A null that stands for an empty value is that empty value.
    """
    return _meaner(node_of(hint))(value)


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


def empty_of(field: Field) -> Json:
    """What a field holds when what was sent for it counts for nothing."""
    if field.default is not None:
        return plain(field.default())
    return {"list": [], "object": {}}.get("".join(kinds(field.node)))


def same(one: Json, other: Json) -> bool:
    """Equal as JSON: unlike in Python, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


# Breaking them


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


def breakages(
    hint: Any, value: Json, seen: set[object] | None = None, dice: Dice | None = None
) -> Iterator[Broken]:
    """This instance with one thing changed, for every place and everything that can be wrong there.

    With `seen`, places that the same fields lead to are broken only once. With `dice` the places come in any order,
    and so do the changes of each.
    """
    places = list(_places(_Place(node_of(hint), value)))
    for place in dice.shuffled(places) if dice else places:
        if seen is not None:
            if (shape := place.shape) in seen:
                continue
            seen.add(shape)
        changes = list(_changes(place))
        for change in dice.shuffled(changes) if dice else changes:
            if (found := _settled(place, *change)) is not None:
                yield found


@st.composite
def broken(draw: Any, hint: Any) -> Broken:
    """A valid instance of this type, broken in some way at some place."""
    dice = Drawn(draw)
    found = next(breakages(hint, Maker(dice).make(hint), dice=dice), None)
    assume(found is not None)
    return found


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


SURROUNDINGS = 5
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
                yield "missing tag", _without(value, tag_field), _kept(value)
                yield "another tag", {**value, tag_field: UNKNOWN_WORD}, _kept(value)
    match node:
        case Object(cls):
            yield from _changed_objects(cls, value, place)
        case Tagged(tag_field, variants, is_open, every):
            strange = {**value, tag_field: UNKNOWN_WORD}
            yield "unknown tag", strange, _kept(strange) if is_open else _bad(f".{tag_field}")
            for name in every:
                yield f"unknown tag without {name}", _without(strange, name), _bad(f".{name}")
            yield "tag of another kind", {**value, tag_field: 7}, _bad(f".{tag_field}")
            yield "missing tag", _without(value, tag_field), _bad(f".{tag_field}") if variants[1:] else _kept(value)
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
            yield "missing", _without(value, field.wire), _bad(f".{field.wire}")
    for old, new in legacy.RENAMED_FIELDS.get(cls.__name__, {}).items():
        if new in value:
            yield "older name", {old: value[new], **_without(value, new)}, _kept(value)


def _settled(place: _Place, how: str, changed: Json, effect: _Effect) -> Broken | None:
    """What comes of this change, from its place outwards; None where the change makes another variant be chosen."""
    at, where = place.path, place.where
    for step in reversed(place.steps):
        container = changed if step.key is None else _with(step.container, step.key, changed)
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
            if cls.__choose__(changed) != cls.__choose__(step.container):
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
            return _kept(_without(step.container, step.key))
        return replace(effect, path=_path_step(step.key) + effect.path)
    if effect.word == KEPT:
        means = _with(step.container, step.key, effect.means)
    elif field is not None and field.required:
        means = _with(step.container, step.key, empty_of(field))
    else:
        means = _without(step.container, step.key)
    if isinstance(step.node, Object) and not holds_together(step.node.cls, means):
        return _bad()
    return _kept(means)


def _with(container: Json, key: Any, value: Json) -> Json:
    changed = container.copy()
    changed[key] = value
    return changed


def _without(container: Json, key: Any) -> Json:
    changed = container.copy()
    del changed[key]
    return changed
