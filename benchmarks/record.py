"""Keeps results and tells when new ones are worse by more than the noise."""

import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import Result

RECORDED = Path(__file__).with_name("recorded.json")

LEAST_LOSS = 0.08
"""Below this nobody would act on a loss, whatever the statistics say."""
MEDIAN_ERROR = 1.2533
"""The standard error of a median, in those of a mean."""
CONFIDENCE = 2.0


@dataclass(frozen=True)
class Regression:
    """A ratio that fell by more than the noise explains."""

    before: Result
    now: Result
    tolerance: float

    def __str__(self) -> str:
        lost = 1 - self.now.ratio / self.before.ratio
        return (
            f"{' '.join(self.now.key)}: {self.before.ratio:.2f}x has become {self.now.ratio:.2f}x,"
            f" {lost:.0%} less where noise explains {self.tolerance:.0%}"
        )


def noise(result: Result) -> float:
    """The relative standard error of a result's ratio."""
    return MEDIAN_ERROR * result.spread / math.sqrt(result.runs)


def tolerance(before: Result, now: Result) -> float:
    """The loss that noise alone can explain: both results have some."""
    return max(LEAST_LOSS, CONFIDENCE * math.hypot(noise(before), noise(now)))


def regressions(before: Sequence[Result], now: Sequence[Result]) -> list[Regression]:
    """What became worse. Ratios only: times of two days, or of two machines, cannot be compared."""
    known = {result.key: result for result in before}
    found: list[Regression] = []
    for result in now:
        if old := known.get(result.key):
            allowed = tolerance(old, result)
            if result.ratio < old.ratio * (1 - allowed):
                found.append(Regression(old, result, allowed))
    return found


def merge(before: Sequence[Result], now: Sequence[Result]) -> list[Result]:
    """New results in the place of old ones with the same key."""
    rows = {result.key: result for result in before} | {result.key: result for result in now}
    return [rows[key] for key in sorted(rows)]


def load(path: Path) -> list[Result]:
    """The results in a file, or none when there is no file."""
    if not path.is_file():
        return []
    return [Result.from_json(row) for row in json.loads(path.read_text())["results"]]


def save(path: Path, results: Sequence[Result]) -> None:
    """Write results, with what there is to know about the machine."""
    machine = {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()}
    rows = [result.to_json() for result in results]
    path.write_text(json.dumps({"machine": machine, "results": rows}, indent=1) + "\n")
