"""What we and the TypeScript SDK make of the same JSON, and how the two differ."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from accord.errors import DecodeError
from accord.schema.codec import convert, plain
from tests.schema.breakages import Broken, breakages
from tests.schema.meanings import meaning
from tests.schema.nodes import WHOLE, types, where
from tests.schema.strategies import Maker, covering

Json = Any

WE_REFUSE, THEY_REFUSE, READ_DIFFERENTLY = "we refuse", "they refuse", "read differently"


@dataclass(frozen=True)
class Case:
    """A value for both, and how it was broken if it was."""

    value: Json
    broken: Broken | None = None

    @property
    def how(self) -> str:
        """In a word that does not depend on the kinds of JSON: a text for a number is as wrong as a list."""
        if self.broken is None:
            return "valid"
        return "wrong kind" if " for " in self.broken.how else self.broken.how


@dataclass(frozen=True)
class Difference:
    """One value that the two do not read alike."""

    version: int
    type: str
    how: str
    broken: str
    places: frozenset[str]
    verdict: str
    value: Json
    detail: str

    def __str__(self) -> str:
        broken = f"{self.how} {self.broken}" if self.broken else self.how
        return f"v{self.version} {self.type}, {broken}: {self.verdict} at {sorted(self.places)}\n  {self.detail:.600}"


def comparable(version: int, theirs: list[str]) -> dict[str, Any]:
    """The types that both have by name."""
    return {name: hint for name, hint in types(version).items() if f"z{name}" in theirs}


def systematic(hint: Any, *, unstable: bool, seen: set[object]) -> Iterator[Case]:
    """Every field, variant and word, and everything that can be wrong at every place not seen before."""
    for value in covering(hint, unstable=unstable, unknown=False):
        yield Case(value)
        for broken in breakages(hint, value, seen):
            yield Case(broken.value, broken)


def arbitrary(hint: Any, maker: Maker, count: int) -> Iterator[Case]:
    """Valid values, and as many with something wrong anywhere."""
    dice = maker.dice
    for _ in range(count):
        value = maker.make(hint)
        if value == []:  # see `filled`: here it is the whole value
            continue
        yield Case(value)
        if (broken := next(breakages(hint, value, order=dice.shuffled), None)) is not None:
            yield Case(broken.value, broken)


Judge = Callable[[list[Json]], list[dict[str, Any]]]


def differences(version: int, name: str, hint: Any, cases: list[Case], judge: Judge) -> Iterator[Difference]:
    verdicts = judge([case.value for case in cases])
    for case, theirs in zip(cases, verdicts, strict=True):
        found = _difference(hint, case.value, theirs)
        if found is not None:
            verdict, places, detail = found
            broken = case.broken.where.replace(WHOLE, name) if case.broken else ""
            places = {place.replace(WHOLE, name) for place in places}
            yield Difference(version, name, case.how, broken, frozenset(places), verdict, case.value, detail)


def _difference(hint: Any, value: Json, theirs: dict[str, Any]) -> tuple[str, set[str], str] | None:
    try:
        ours = plain(convert(value, hint))
    except DecodeError as error:
        if not theirs["ok"]:
            return None
        return WE_REFUSE, {where(hint, value, _steps(error.path))}, f"{error}: {value!r}"
    if not theirs["ok"]:
        place = where(hint, value, [int(step) if isinstance(step, float) else step for step in theirs["path"]])
        return THEY_REFUSE, {place}, f"{theirs['message']} at {theirs['path']}: {value!r}"
    one, other = meaning(hint, _in_javascript(ours)), meaning(hint, theirs.get("value"))
    if one == other:
        return None
    places = {where(hint, one, path) for path in _unlike(one, other)}
    return READ_DIFFERENTLY, places, f"ours {one!r}\n  theirs {other!r}"


def _in_javascript(value: Json) -> Json:
    """This value with its numbers as JavaScript has them, which is how theirs come."""
    return json.loads(json.dumps(value), parse_int=float)


def _unlike(one: Json, other: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where two values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            if key in one and key in other:
                yield from _unlike(one[key], other[key], (*path, key))
            else:
                yield (*path, key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _unlike(*pair, (*path, index))
    elif one != other:
        yield path


def _steps(path: str) -> list[str | int]:
    """`$.update.content[0]` as keys and indexes; no field's name has a dot or a bracket in it."""
    steps = path.removeprefix("$").replace("[", ".[").split(".")[1:]
    return [int(step[1:-1]) if step.startswith("[") and step[1:-1].isdigit() else step for step in steps]
