"""Results as a table."""

from collections.abc import Iterable, Sequence

from benchmarks.results import Result

HEADINGS = ("measure", "peer", "loop", "ours", "theirs", "unit", "ratio", "spread", "runs")
LEFT = {"measure", "peer", "loop", "unit"}


def figure(value: float) -> str:
    """Three digits are as many as a shared machine can tell."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def columns(rows: Sequence[Sequence[str]], left: Iterable[int]) -> list[str]:
    """Rows of cells as lines of equal columns."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    to_left = set(left)
    return [
        "  ".join(
            cell.ljust(width) if place in to_left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def cells(result: Result) -> tuple[str, ...]:
    """One result's row."""
    return (
        result.measure,
        result.peer,
        result.loop,
        figure(result.ours),
        figure(result.theirs),
        result.unit,
        f"{result.ratio:.2f}x",
        f"±{result.spread:.0%}",
        str(result.runs),
    )


def table(results: Sequence[Result]) -> str:
    """Every result in a row; latencies, where there are some, below."""
    if not results:
        return "nothing was measured"
    rows = [HEADINGS, *(cells(result) for result in results)]
    lines = columns(rows, (place for place, name in enumerate(HEADINGS) if name in LEFT))
    lines.insert(1, "-" * max(map(len, lines)))
    timed = [latency(result) for result in results if result.p50us and result.p99us]
    return "\n".join([*lines, *([""] if timed else []), *timed])


def latency(result: Result) -> str:
    """A round trip's latency on both sides."""
    (our50, their50), (our99, their99) = result.p50us or (0, 0), result.p99us or (0, 0)
    name = f"{result.measure} {result.peer} ({result.loop})"
    return f"{name}: p50 {figure(our50)} against {figure(their50)} µs, p99 {figure(our99)} against {figure(their99)} µs"
