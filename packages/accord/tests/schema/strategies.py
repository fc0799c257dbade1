"""JSON for every type of ours, made from what its annotations say: valid, and broken on purpose.

    types(version)             every type of a version by name, whatever it has
    covering(hint)             a few valid instances that together show every field, variant and word
    instances(hint)            hypothesis: any valid instance
    breakages(hint, value)     every way to break an instance at one place, and what must come of it
    broken(hint)               hypothesis: an instance, broken in one of these ways
    meaning(hint, value)       an instance without what means nothing: two that mean the same are then equal

Nothing here is listed by hand: the walk is over the nodes of `accord.schema.type_tree`. All choices go through `Dice`,
rolled by hypothesis where a failure should shrink and by `random` where thousands are wanted. What is broken stands in
`breakages`, what counts as equal in `meanings`, and what annotations say in `nodes`.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field as dataclass_field
from typing import Any

import msgspec
import pytest
from hypothesis import assume, strategies as st

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
    node_of,
)
from tests.schema.breakages import Broken, breakages
from tests.schema.nodes import (
    ADDRESS,
    UNKNOWN_WORD,
    Json,
    bare,
    holds_together,
    kinds,
    shown_fields,
    strange_variant,
    tag_of_variant,
    variants_of,
    version_is_here,
    without,
)


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


HALF = "\ud83d"
"""The first half of an emoji that was cut in two."""

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
        shown = shown_fields(cls, unstable=self.unstable)
        made = {
            field.wire: self.field(field, depth + 1)
            for field in shown
            if field.required or not self.dice.chance(40 + 10 * min(depth, 4))
        }
        if not holds_together(cls, made):
            cover = _Cover(self.unstable, self.unknown)
            made = _held_together(cls, made, {field: cover.of(field.node, depth + 1) for field in shown})[0]
        return {**tag_of_variant(Object(cls)), **made}

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


@st.composite
def broken(draw: Any, hint: Any) -> Broken:
    """A valid instance of this type, broken in some way at some place."""
    dice = Drawn(draw)
    found = next(breakages(hint, Maker(dice).make(hint), order=dice.shuffled), None)
    assume(found is not None)
    return found


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
    others = [without(value, field.wire) for field in shown if not field.required and field.wire in value]
    others += [value | {field.wire: cover} for field, covers in shown.items() for cover in covers]
    return [other for other in others if holds_together(cls, other)]


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
