"""The options of every pair benchmark: how many pairs, and what becomes of the results."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers import OURS
from benchmarks.record import RECORDED


def add_options(parser: argparse.ArgumentParser, quick: str = "two short pairs") -> None:
    """Add the options to a parser that has those of its benchmark; `quick` says what --quick measures."""
    parser.set_defaults(ours=OURS.name)
    parser.add_argument("--pairs", type=int, help="how many pairs of runs (5, or 2 with --quick)")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--record", action="store_true", help=f"keep the results in {RECORDED.name}")
    parser.add_argument("--chart", type=Path, metavar="PATH", help="draw the results to an SVG file")
    parser.add_argument("--compare", type=Path, metavar="PATH", help="complain when a ratio fell below a recorded one")


def chosen_options(parser: argparse.ArgumentParser, given: Sequence[str] | None) -> argparse.Namespace:
    """What was chosen on the command line."""
    chosen = parser.parse_args(given)
    if chosen.pairs is not None and chosen.pairs < 1:
        parser.error("--pairs takes a number from 1 up")
    if chosen.compare and not chosen.compare.is_file():
        parser.error(f"there is no {chosen.compare}")
    return chosen
