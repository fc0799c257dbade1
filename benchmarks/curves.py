"""Figures by load as a picture: a line for each peer, both axes logarithmic."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from benchmarks.chart import COLOURS, OTHER_COLOUR, STYLE, word
from benchmarks.report import figure

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 130, 60, 54
APART = 15
"""Pixels between the names at the ends of two lines."""


class Curve(NamedTuple):
    """What a chart shows."""

    series: str
    title: str
    across: str
    up: str


class Axis:
    """Powers of ten, from the one below the least value to the one above the largest."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self._low = math.floor(math.log10(min(values)))
        self._high = max(self._low + 1, math.ceil(math.log10(max(values))))
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        """Where a value lies."""
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return round(self._start + share * (self._end - self._start), 1)

    def ticks(self) -> list[float]:
        """The powers of ten."""
        return [10.0**power for power in range(self._low, self._high + 1)]


def named(value: float) -> str:
    """A tick's name: 100, 10k, 1M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def spread_apart(places: Mapping[str, float], most: float = math.inf) -> dict[str, float]:
    """The same places from top to bottom, so far apart that names do not cover each other, and none below `most`."""
    found: dict[str, float] = {}
    least = 0.0
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        least = found[name] = max(place, least)
        least += APART
    for name in reversed(found):
        most = found[name] = min(found[name], most)
        most -= APART
    return found


def curves(chart: Curve, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The picture as SVG text; `lines` has the points of each peer, which must be positive."""
    across = Axis([load for line in lines.values() for load, _ in line], LEFT, WIDTH - RIGHT)
    up = Axis([value for line in lines.values() for _, value in line], HEIGHT - BOTTOM, TOP)
    body: list[str] = []
    for tick in across.ticks():
        x = across.at(tick)
        body.append(f'<line class="grid" x1="{x}" y1="{TOP}" x2="{x}" y2="{HEIGHT - BOTTOM}"/>')
        body.append(f'<text class="quiet" x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{named(tick)}</text>')
    for tick in up.ticks():
        y = up.at(tick)
        body.append(f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>')
        body.append(f'<text class="quiet" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{named(tick)}</text>')
    names = spread_apart({peer: up.at(line[-1][1]) for peer, line in lines.items()}, HEIGHT - BOTTOM)
    for peer, line in lines.items():
        body += drawn(peer, line, across, up, names[peer])
    middle = (LEFT + WIDTH - RIGHT) / 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{escape(chart.title)}</title>",
            f"<style>{STYLE}</style>",
            f'<text class="title" x="12" y="24">{escape(chart.title)}</text>',
            f'<text class="quiet" x="12" y="42">{escape(chart.up)}; lower is better</text>',
            *body,
            f'<text class="quiet" x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">{escape(chart.across)}</text>',
            "</svg>\n",
        ]
    )


def drawn(peer: str, line: Sequence[tuple[float, float]], across: Axis, up: Axis, name_at: float) -> list[str]:
    """One peer's line, a dot with its figure for each point, and the peer's name at the end."""
    colour, name = COLOURS.get(peer, OTHER_COLOUR), word(peer)
    places = [(across.at(load), up.at(value)) for load, value in line]
    path = " ".join(f"{x},{y}" for x, y in places)
    dots = [
        f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"><title>{escape(f"{name} at {named(load)}: {figure(value)}")}'
        "</title></circle>"
        for (x, y), (load, value) in zip(places, line, strict=True)
    ]
    end_x, end_y = places[-1]
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *dots,
        f'<line x1="{end_x}" y1="{end_y}" x2="{end_x + 20}" y2="{name_at}" stroke="{colour}"/>',
        f'<text x="{end_x + 24}" y="{name_at + 4}">{escape(name)}</text>',
    ]
