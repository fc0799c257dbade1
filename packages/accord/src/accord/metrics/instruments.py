"""`Counter`, `Gauge` and `Histogram`: numbers with labels, as Prometheus reads them. PURE.

An instrument may have a *mirror*, which gets each change as well: an instrument of OpenTelemetry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]
Mirror: TypeAlias = Callable[[float, Mapping[str, str]], object]

SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""The upper bounds of the parts of a histogram: a turn takes seconds to minutes."""


class Counter:
    """A number that only grows, for each set of labels."""

    kind = "counter"

    def __init__(self, name: str, help_text: str, fixed: Labels = ()) -> None:
        self.name = name
        self.help_text = help_text
        self.mirror: Mirror | None = None
        self._fixed = fixed
        self._values: dict[Labels, float] = {}

    def add(self, number: float = 1, **labels: str) -> None:
        """Add to the number with these labels."""
        key = (*self._fixed, *labels.items())
        self._values[key] = self._values.get(key, 0) + number
        if self.mirror is not None:
            self.mirror(number, dict(key))

    def value(self, **labels: str) -> float:
        """The number with these labels."""
        return self._values.get((*self._fixed, *labels.items()), 0)

    def samples(self) -> Iterator[tuple[str, Labels, float]]:
        """The lines of the text format: name, labels, number."""
        for labels, value in self._values.items() or [(self._fixed, 0.0)]:
            yield self.name, labels, value


class Gauge(Counter):
    """A number that grows and shrinks."""

    kind = "gauge"


class Histogram:
    """How many times in seconds were below each bound, and their sum."""

    kind = "histogram"

    def __init__(self, name: str, help_text: str, fixed: Labels = ()) -> None:
        self.name = name
        self.help_text = help_text
        self.mirror: Mirror | None = None
        self._fixed = fixed
        self._parts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def record(self, seconds: float, **labels: str) -> None:
        """Count this time."""
        key = (*self._fixed, *labels.items())
        parts = self._parts.setdefault(key, [0] * (len(SECONDS) + 1))
        parts[bisect_left(SECONDS, seconds)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + seconds
        if self.mirror is not None:
            self.mirror(seconds, dict(key))

    def samples(self) -> Iterator[tuple[str, Labels, float]]:
        """The lines of the text format: name, labels, number."""
        for labels, parts in self._parts.items():
            below = 0
            for bound, count in zip(map(str, (*SECONDS, "+Inf")), parts, strict=True):
                below += count
                yield f"{self.name}_bucket", (*labels, ("le", bound)), below
            yield f"{self.name}_sum", labels, self._sums[labels]
            yield f"{self.name}_count", labels, below


def text_of(instruments: list[Counter | Histogram]) -> str:
    """Instruments in the text format of Prometheus, version 0.0.4.

    >>> turns = Counter("accord_turns_total", "Turns that ended.", (("host", "a"),))
    >>> turns.add(outcome="end_turn")
    >>> print(text_of([turns]), end="")
    # HELP accord_turns_total Turns that ended.
    # TYPE accord_turns_total counter
    accord_turns_total{host="a",outcome="end_turn"} 1
    """
    lines: list[str] = []
    for instrument in instruments:
        lines += [
            f"# HELP {instrument.name} {instrument.help_text}",
            f"# TYPE {instrument.name} {instrument.kind}",
            *(f"{name}{_labels(labels)} {value:.10g}" for name, labels, value in instrument.samples()),
        ]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
