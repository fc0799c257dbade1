"""The strip above the page: how many messages and errors each part of a trace's time has. PURE."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import Any

from accord_tools.inspector.index import TraceIndex

MOST_BINS = 4_000


def strip_of(index: TraceIndex, bins: int, begin: float | None = None, end: float | None = None) -> dict[str, Any]:
    """Counts for each of `bins` equal parts of the time from `begin` to `end`; by default of the whole trace.

    Times of a trace grow, except where two writers disagree by a little; so a bisection finds the rows of a part.
    """
    times = index.columns.time
    first = times[0] if times else 0.0
    last = times[-1] if times else 0.0
    begin = first if begin is None else begin
    end = last if end is None else end
    bins = max(1, min(bins, MOST_BINS))
    width = max(end - begin, 1e-9) / bins
    edges = [bisect_left(times, begin + width * at) for at in range(bins)] + [bisect_left(times, end + 1e-9)]
    errors = [0] * bins
    for row in index.columns.errors:
        place = int((times[row] - begin) / width)
        if 0 <= place <= bins:
            errors[min(place, bins - 1)] += 1
    return {
        "begin": begin,
        "end": end,
        "counts": [max(after - before, 0) for before, after in pairwise(edges)],
        "errors": errors,
    }
