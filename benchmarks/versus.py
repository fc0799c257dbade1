"""Ours against a peer: a run of ours, a run of theirs, and again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.build import Built
from benchmarks.measure import Failed, Measure, Side, run, sizes_for
from benchmarks.peers import DEFAULT_LOOP
from benchmarks.results import Pair, Result, summarize

T = TypeVar("T")
Say = Callable[[str], None]
Warmed = dict[tuple[str, ...], dict[str, int]]
"""The sizes that our own warm-ups came to: one does for all the peers that are asked for the same."""
Readings = dict[str, Pair]
"""One pair of runs: what each measure gave on both sides."""

SPARE = 2
"""How many pairs may fail before a peer is given up."""


class OursFailed(Exception):
    """The implementation under test did not do what the contract says."""


@dataclass(frozen=True)
class Scope:
    """How much to measure."""

    pairs: int
    seconds: float
    """How long a measure should take in each run."""


def loops_of(ours: Built, wanted: Sequence[str]) -> list[str]:
    """The loops to compare on: ours decides; a peer without a choice has one row for each of ours."""
    return [loop for loop in wanted if loop in ours.peer.loops] if ours.peer.loops else [DEFAULT_LOOP]


def side(built: Built, loop: str) -> Side:
    """The implementation on a loop, if it has one."""
    return Side(built, loop if loop in built.peer.loops else "")


def possible(measure: Measure, *peers: Built) -> bool:
    """Only what loads a library at run time has an import to measure."""
    return measure.name != "import" or all(built.peer.imports for built in peers)


def collect(count: int, one_pair: Callable[[], Readings], say: Say) -> list[Readings]:
    """So many pairs. A peer that breaks now and then loses those pairs; one that keeps breaking is given up."""
    found: list[Readings] = []
    lost = 0
    while len(found) < count and lost <= SPARE:
        try:
            found.append(one_pair())
        except Failed as error:
            lost += 1
            say(f"lost a pair: {error}")
        else:
            say(f"pair {len(found)} of {count}")
    return found


def versus(
    ours: Built, theirs: Built, loop: str, measures: Sequence[Measure], scope: Scope, warmed: Warmed, say: Say
) -> list[Result]:
    """Measure both sides in turn. The measures of one call share their processes."""
    us, them = side(ours, loop), side(theirs, loop)
    measures = [measure for measure in measures if possible(measure, ours, theirs)]
    if not measures:
        return []
    title = f"{', '.join(measure.name for measure in measures)}: {us.name} / {them.name} ({loop})"
    # Both sides get the same turns, so a peer that cannot take long ones shortens them for both.
    longest = min((built.peer.longest_turn for built in (ours, theirs) if built.peer.longest_turn), default=None)
    key = (loop, *(measure.name for measure in measures), str(longest))
    if key not in warmed:
        warmed[key] = loud(lambda: sizes_for(us, measures, longest, scope.seconds), title)
    try:
        their_sizes = sizes_for(them, measures, longest, scope.seconds)
    except Failed as error:
        say(f"{title}: gave up at the warm-up: {error}")
        return []

    def one_pair() -> Readings:
        mine = loud(lambda: run(us, measures, warmed[key], longest), title)
        yours = run(them, measures, their_sizes, longest)
        return {name: (mine[name], yours[name]) for name in mine}

    pairs = collect(scope.pairs, one_pair, lambda line: say(f"{title}: {line}"))
    return [
        summarize(
            measure.name,
            them.name,
            loop,
            measure.unit,
            [pair[measure.name] for pair in pairs],
            more_is_better=measure.more_is_better,
        )
        for measure in (measures if pairs else ())
    ]


def loud(attempt: Callable[[], T], title: str) -> T:
    """A run of ours: a failure of ours is never just a lost pair."""
    try:
        return attempt()
    except Failed as error:
        raise OursFailed(f"{title}: ours failed: {error}") from error
