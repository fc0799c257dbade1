"""Results as a picture: one bar a peer, grouped by measure, on a scale where 1x is a line.

python -m benchmarks.chart docs/performance.svg    draw what recorded.json has
"""

import math
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

from benchmarks.measure import MEASURES
from benchmarks.record import RECORDED, load
from benchmarks.report import figure
from benchmarks.results import Result

WIDTH, LEFT, RIGHT, TOP = 760, 190, 120, 64
BAR, GAP, GROUP_GAP = 16, 4, 22
COLOURS = {
    "python": "#3572a5",
    "python-next": "#6f9fc8",
    "typescript": "#7a5aa6",
    "go": "#0097b8",
    "rust": "#b7410e",
    "floor": "#8a8a8a",
}
OTHER_COLOUR = "#4d7c3a"
WORDS = {
    "accord": "Accord",
    "python": "Python",
    "python-next": "Python 1.0.0rc3",
    "typescript": "TypeScript",
    "go": "Go",
    "rust": "Rust",
    "stream": "updates a second",
    "tools": "tool calls",
    "read": "round trips",
    "conc": "100 in flight",
    "big": "10 MB both ways",
}
"""How a reader of the picture calls measures and peers; the others keep their names."""
STYLE = """
svg { background: #ffffff; }
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 16px; font-weight: 600; }
.group { font-weight: 600; }
.quiet { fill: #6e7781; }
.grid { stroke: #d0d7de; }
.one { stroke: #24292f; }
.whisker { stroke: #24292f; stroke-opacity: .6; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; }
  text { fill: #e6edf3; }
  .quiet { fill: #8b949e; }
  .grid { stroke: #30363d; }
  .one, .whisker { stroke: #e6edf3; }
}
"""


class Scale:
    """Ratios on a logarithmic axis, so that twice as fast and half as fast are equally far from the line at 1x."""

    def __init__(self, ratios: Sequence[float]) -> None:
        self.low = min(-1, math.floor(math.log2(min(ratios))))
        self.high = max(1, math.ceil(math.log2(max(ratios))))

    def at(self, ratio: float) -> float:
        share = (math.log2(ratio) - self.low) / (self.high - self.low)
        return round(LEFT + max(0.0, min(1.0, share)) * (WIDTH - LEFT - RIGHT), 1)

    def ticks(self) -> list[float]:
        step = max(1, math.ceil((self.high - self.low) / 8))
        ticks = [2.0**power for power in range(self.low, self.high + 1) if power % step == 0]
        return ticks if 1.0 in ticks else sorted([*ticks, 1.0])


def times(tick: float) -> str:
    """A tick's name: 4x, 1/4x."""
    return f"{tick:g}x" if tick >= 1 else f"1/{1 / tick:g}x"


def word(name: str) -> str:
    """A measure or a peer as a reader calls it."""
    return WORDS.get(name, name)


def bar(result: Result, scale: Scale, top: int) -> list[str]:
    """A bar from the line to the ratio, its spread as a whisker, its figures behind it."""
    start, end = sorted((scale.at(1), scale.at(result.ratio)))
    low, high = (scale.at(result.ratio * (1 + sign * min(result.spread, 0.9))) for sign in (-1, 1))
    colour = COLOURS.get(result.peer, OTHER_COLOUR)
    middle = top + BAR / 2
    told = f"{result.ratio:.3g}x: {figure(result.ours)} against {figure(result.theirs)} {result.unit}"
    return [
        f"<g><title>{escape(f'{word(result.measure)}, {word(result.peer)}: {told}')}</title>",
        f'<text x="{LEFT - 8}" y="{middle + 4}" text-anchor="end">{escape(word(result.peer))}</text>',
        f'<rect x="{start}" y="{top}" width="{max(1.0, round(end - start, 1))}" height="{BAR}" fill="{colour}"/>',
        f'<line class="whisker" x1="{low}" y1="{middle}" x2="{high}" y2="{middle}"/>',
        f'<text x="{max(end, high) + 6}" y="{middle + 4}">{result.ratio:.3g}x</text></g>',
    ]


def chart(results: Sequence[Result], ours: str) -> str:
    """The picture as SVG text. One loop is drawn: the first that the results have."""
    loop = results[0].loop
    drawn = [result for result in results if result.loop == loop]
    groups: dict[str, list[Result]] = {}
    for result in drawn:
        groups.setdefault(result.measure, []).append(result)
    scale = Scale([result.ratio for result in drawn])
    body: list[str] = []
    top = TOP
    for measure, members in groups.items():
        body.append(f'<text class="group" x="12" y="{top + BAR - 3}">{escape(word(measure))}</text>')
        for result in members:
            body += bar(result, scale, top)
            top += BAR + GAP
        top += GROUP_GAP
    height = top + 10
    grid = [
        f'<line class="{"one" if tick == 1 else "grid"}" x1="{scale.at(tick)}" y1="{TOP - 8}" x2="{scale.at(tick)}"'
        f' y2="{height - 30}"/>'
        f'<text class="quiet" x="{scale.at(tick)}" y="{height - 14}" text-anchor="middle">{times(tick)}</text>'
        for tick in scale.ticks()
    ]
    title = f"How many times as good {word(ours)} is as each SDK"
    note = f"median of pairwise runs on one machine, event loop {loop}; right of 1x {word(ours)} is ahead"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<text class="title" x="12" y="24">{escape(title)}</text>',
            f'<text class="quiet" x="12" y="42">{escape(note)}</text>',
            *grid,
            *body,
            "</svg>\n",
        ]
    )


def recorded(results: Sequence[Result]) -> str:
    """The picture of recorded results, in the order of the measures and of the colours."""
    measures, peers = list(MEASURES), list(COLOURS)
    drawn = [result for result in results if result.measure in measures and result.peer in peers]
    drawn.sort(key=lambda result: (result.loop, measures.index(result.measure), peers.index(result.peer)))
    return chart(drawn, "accord")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(recorded(load(RECORDED)), encoding="utf-8")
