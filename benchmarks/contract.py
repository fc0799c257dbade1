"""What every agent does and every client expects: payloads, commands and figures.

Agents import this before they answer, so it must cost next to nothing to import: no module beside `time`.
"""

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

Json = Any

FILE = "/bench/file.txt"
PATTERN = "the quick brown fox jumps over the lazy dog "
ALLOW, REJECT = "allow", "reject"


def text(length: int) -> str:
    """Plain words, the same in every language's agent."""
    return (PATTERN * (length // len(PATTERN) + 1))[:length]


OLD_TEXT = text(1024)
NEW_TEXT = OLD_TEXT.upper()
TOOL_TEXT = text(40)
FILE_TEXT = (text(63) + "\n") * 16


class Command(NamedTuple):
    """A prompt's first word and the rest of its words."""

    verb: str
    words: tuple[str, ...]

    def number(self, position: int, default: int = 0) -> int:
        """The integer at a position, or the default when there is none."""
        try:
            return int(self.words[position])
        except (IndexError, ValueError):
            return default

    def rest(self, position: int) -> str:
        """Everything from a position on."""
        return " ".join(self.words[position:])


def parse(prompt: str) -> Command:
    """Take a prompt's text apart. A long text is never split: it can only be one to echo."""
    if len(prompt) > 1000:
        return Command("", ())
    verb, *words = prompt.split() or [""]
    return Command(verb, tuple(words))


def percentile(values: Sequence[float], share: float) -> float | None:
    """The nearest rank, or None when nothing was timed."""
    if not values:
        return None
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


class Figures:
    """What an agent reports in `_meta.bench` about its own turn."""

    __slots__ = ("_begun", "n", "times")

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self.n = 0
        self.times: list[float] = []

    def bench(self) -> dict[str, Json]:
        """Latencies are there for requests only: timing each send would cost more than sending."""
        seconds = time.perf_counter() - self._begun
        p50, p99 = percentile(self.times, 0.5), percentile(self.times, 0.99)
        return {
            "ms": round(seconds * 1e3, 3),
            "n": self.n,
            "perSec": round(self.n / seconds, 1) if seconds else 0.0,
            "p50us": None if p50 is None else round(p50 * 1e6, 1),
            "p99us": None if p99 is None else round(p99 * 1e6, 1),
        }


def run(main: Callable[[], Coroutine[Any, Any, int | None]], *, uvloop: bool) -> int:
    """Run on the loop that was asked for, the way each loop's documentation says."""
    if uvloop:
        import uvloop as loop

        return loop.run(main()) or 0
    import asyncio

    return asyncio.run(main()) or 0
