"""What a comparison yields, and the little statistics behind it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

DEVIATION = 1.4826
"""Turns a median absolute deviation into what a standard deviation would be for normal noise."""


@dataclass(frozen=True)
class Reading:
    """What one run of one side gave for one measure."""

    value: float
    p50us: float | None = None
    p99us: float | None = None


Latency = tuple[float, float] | None
"""Ours and theirs, where the measure has round trips."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One measure of ours against one peer's. The ratio is larger when ours is better, whatever the unit."""

    measure: str
    peer: str
    loop: str
    ratio: float
    spread: float
    """The typical relative distance of a pair's ratio from the median: 0.05 is five per cent."""
    ours: float
    theirs: float
    unit: str
    runs: int
    p50us: Latency = None
    p99us: Latency = None

    def to_json(self) -> dict[str, Any]:
        """Without what the measure does not have."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> "Result":
        """The other way round."""
        latencies: dict[str, Any] = {name: tuple(row[name]) for name in ("p50us", "p99us") if name in row}
        return cls(**{**row, **latencies})

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two results comparable."""
        return self.measure, self.peer, self.loop


Pair = tuple[Reading, Reading]
"""Ours and theirs, one run right after the other."""


def spread_of(ratios: Sequence[float]) -> float:
    """How far the ratios lie from their median, robust against a single run that was disturbed."""
    middle = median(ratios)
    return DEVIATION * median(abs(ratio - middle) for ratio in ratios) / middle


def both(pairs: Sequence[Pair], pick: Callable[[Reading], float | None]) -> Latency:
    """The medians of a figure that both sides have."""
    ours = [value for reading, _ in pairs if (value := pick(reading)) is not None]
    theirs = [value for _, reading in pairs if (value := pick(reading)) is not None]
    return (round(median(ours), 1), round(median(theirs), 1)) if ours and theirs else None


def summarize(measure: str, peer: str, loop: str, unit: str, pairs: Sequence[Pair], *, more_is_better: bool) -> Result:
    """The median of the pairwise ratios. A pair ran back to back, so what slowed one slowed the other."""
    values = [(ours.value, theirs.value) for ours, theirs in pairs]
    ratios = [ours / theirs if more_is_better else theirs / ours for ours, theirs in values]
    return Result(
        measure=measure,
        peer=peer,
        loop=loop,
        ratio=round(median(ratios), 4),
        spread=round(spread_of(ratios), 4),
        ours=round(median(ours for ours, _ in values), 3),
        theirs=round(median(theirs for _, theirs in values), 3),
        unit=unit,
        runs=len(pairs),
        p50us=both(pairs, lambda reading: reading.p50us),
        p99us=both(pairs, lambda reading: reading.p99us),
    )
