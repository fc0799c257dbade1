"""`ValidationError`: what a model's fields were given and cannot hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Place = tuple[str | int, ...]


class ValidationError(ValueError):
    """The values given to a model do not fit its fields; `errors()` lists what is wrong, and where."""

    def __init__(self, title: str, problems: Sequence[tuple[Place, str]]) -> None:
        self.title = title
        """The name of the model."""
        self.problems = list(problems)
        """What is wrong: the place in the value, and the problem there."""
        said = "; ".join(f"{'.'.join(map(str, place)) or 'value'}: {problem}" for place, problem in self.problems)
        super().__init__(f"{title}: {said}")

    def errors(self, **_: Any) -> list[dict[str, Any]]:
        """The problems as plain values: `loc` is the place, `msg` says what is wrong there."""
        return [{"type": "value_error", "loc": list(place), "msg": problem} for place, problem in self.problems]

    def error_count(self) -> int:
        """The number of problems."""
        return len(self.problems)


class Misfit(Exception):
    """A value does not fit; raised by checks, and turned into a `ValidationError` by the model."""

    def __init__(self, problem: str, place: Place = (), more: Sequence[tuple[Place, str]] = ()) -> None:
        super().__init__(problem)
        self.problems: list[tuple[Place, str]] = [(place, problem), *more]

    @classmethod
    def of(cls, problems: Sequence[tuple[Place, str]]) -> Misfit:
        """The misfit that has all of these problems."""
        (place, problem), *more = problems
        return cls(problem, place, more)

    def at(self, key: str | int) -> list[tuple[Place, str]]:
        """The problems as seen from the value that holds this one under `key`."""
        return [((key, *place), problem) for place, problem in self.problems]


def kind(value: object) -> str:
    """What a value is, in a few words for an error."""
    return "null" if value is None else type(value).__name__
