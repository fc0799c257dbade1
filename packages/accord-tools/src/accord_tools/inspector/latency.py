"""How long each method's answers took, and when: what the plots of latency show. PURE.

A method with many answers has `MOST_POINTS` points: of each part of the trace the slowest, because those are what
people look for.
"""

from __future__ import annotations

from typing import Any

from accord_tools.inspector.index import TraceIndex
from accord_tools.inspector.lines import ANSWER, ERROR

MOST_POINTS = 600
MOST_METHODS = 60


def latencies(index: TraceIndex) -> dict[str, Any]:
    """The methods with answers, those that took the most time in all first.

    A point is `[time of the request, seconds, row of the request, 1 if it failed]`.
    """
    methods: dict[int, list[tuple[float, float, int, int]]] = {}
    columns = index.columns
    times, pairs = columns.time, columns.pair
    for row, kind in enumerate(columns.kind):
        if kind in (ANSWER, ERROR) and (asked := pairs[row]) >= 0:
            point = (times[asked], max(times[row] - times[asked], 0.0), asked, int(kind == ERROR))
            methods.setdefault(columns.method[row], []).append(point)
    found = [_method(index.methods[method], points) for method, points in methods.items()]
    found.sort(key=lambda it: -it["total"])
    return {"methods": found[:MOST_METHODS], "leftOut": max(len(found) - MOST_METHODS, 0)}


def _method(name: str, points: list[tuple[float, float, int, int]]) -> dict[str, Any]:
    took = sorted(point[1] for point in points)
    return {
        "method": name,
        "count": len(points),
        "errors": sum(point[3] for point in points),
        "total": sum(took),
        "p50": took[len(took) // 2],
        "p95": took[min(len(took) - 1, len(took) * 95 // 100)],
        "max": took[-1],
        "points": sorted(_slowest(points)),
    }


def _slowest(points: list[tuple[float, float, int, int]]) -> list[tuple[float, float, int, int]]:
    """All points, or the slowest of each part if there are too many."""
    if len(points) <= MOST_POINTS:
        return points
    size = -(-len(points) // MOST_POINTS)
    return [max(points[at : at + size], key=lambda point: point[1]) for at in range(0, len(points), size)]
