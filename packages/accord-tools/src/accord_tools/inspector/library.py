"""The traces that the inspector shows: named files, and stored ones. Each is opened on first use.

Library ──▶ OpenTrace ──▶ TraceIndex, folded turns, searches
                └─▶ follow: grows the index a slice at a time, and tells those who wait for changes
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from accord import AccordError
from accord.trace.query import Term
from accord_tools.inspector.folded_turn import Folds
from accord_tools.inspector.trace_index import TraceIndex
from accord_tools.inspector.trace_lines import TraceReader
from accord_tools.inspector.trace_search import Search, TraceFindings
from accord_tools.tap import KeptTrace, kept_traces

LOOK_EVERY = 0.1
"""Seconds between two checks of a trace that may grow."""

MOST_OPEN = 6
MOST_SEARCHES = 8
MOST_LISTED = 500

log = logging.getLogger("accord")


class UnknownTrace(AccordError):
    """A trace that the inspector does not show."""


def status_of(index: TraceIndex, findings: TraceFindings, generation: int = 0) -> dict[str, Any]:
    """Return how far a trace is read, and its contents."""
    read, size = index.progress
    return {
        "generation": generation,
        "count": len(index),
        "runs": len(index.columns.runs),
        "turns": index.prompts,
        "parts": len(index.turns),
        "sessions": len(index.sessions) - 1,
        "errors": len(index.columns.errors),
        "findings": len(findings),
        "open": index.open_requests,
        "end": index.columns.time[-1] if len(index) else 0.0,
        "read": read,
        "size": size,
        "problem": index.problem,
    }


class OpenTrace:
    """A trace whose index grows with its file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = TraceIndex(TraceReader(path))
        self.folds = Folds(self.index)
        self.findings = TraceFindings(self.index)
        self.generation = 0
        """Counts how often the file was replaced: rows of an older generation are invalid now."""
        self.problem: str | None = None
        self._searches: OrderedDict[str, Search] = OrderedDict()
        self._changed = asyncio.Event()
        self._following = asyncio.create_task(self._follow(), name=f"accord inspect: follow {path.name}")

    async def _follow(self) -> None:
        while True:
            try:
                progressed = self._look()
            except (AccordError, OSError) as error:
                self.problem = str(error)
                self._tell()
                return
            if progressed:
                self._tell()
            await asyncio.sleep(0 if progressed else LOOK_EVERY)

    def _look(self) -> bool:
        if self.index.reader.is_replaced(self.index.progress[0]):
            self.index.start_again(TraceReader(self.path))
            self.folds = Folds(self.index)
            self.findings = TraceFindings(self.index)
            self._searches.clear()
            self.generation += 1
            return True
        if self.index.is_behind and self.index.grow():
            return True
        if not self.findings.is_behind:
            return False
        self.findings.step()
        return True

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, patience: float) -> None:
        """Wait until the index has grown, or for this many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._changed.wait()

    async def first_lines(self) -> None:
        """Wait until the header is read."""
        while not self.index.header and self.problem is None and self.index.is_behind:
            await self.changed(LOOK_EVERY)

    def search(self, key: str, query: tuple[Term, ...]) -> Search:
        """Return the search with this key, begun if it is new."""
        if key not in self._searches:
            self._searches[key] = Search(self.index, query, self.findings)
            if len(self._searches) > MOST_SEARCHES:
                self._searches.popitem(last=False)
        self._searches.move_to_end(key)
        return self._searches[key]

    def known_search(self, key: str) -> Search | None:
        """Return the search with this key; None if it was never begun, or is no longer kept."""
        return self._searches.get(key)

    def status(self) -> dict[str, Any]:
        """Return how far the trace is read, and its contents."""
        found = status_of(self.index, self.findings, self.generation)
        return {**found, "problem": self.problem or found["problem"]}

    async def close(self) -> None:
        """Stop following the file, and close it."""
        self._following.cancel()
        await asyncio.wait([self._following])
        self.index.reader.close()


class Library:
    """The traces that can be opened: the named files, and those that `accord_tools.tap` stores, unless `kept`
    is false.
    """

    def __init__(self, files: Sequence[Path] = (), *, kept: bool = True) -> None:
        self._files = [path.absolute() for path in files]
        self._lists_stored = kept
        self._open: OrderedDict[str, OpenTrace] = OrderedDict()

    def listed(self) -> list[dict[str, Any]]:
        """Return the traces in the order of the page: the named ones, then live ones and the newest."""
        kept = {Path(trace.path): trace for trace in self._stored()}
        rows: list[dict[str, Any]] = []
        for path in dict.fromkeys((*self._files, *kept)):
            header = kept[path].header if path in kept else None
            rows.append(
                {
                    "id": trace_id(path),
                    "name": path.name,
                    "folder": str(path.parent),
                    "size": _stat(path, "st_size"),
                    "changed": _stat(path, "st_mtime"),
                    "live": path in kept and kept[path].live is not None,
                    "peer": "" if header is None else " ".join(header.command) or header.peer,
                }
            )
        return rows

    def _stored(self) -> list[KeptTrace]:
        return kept_traces()[:MOST_LISTED] if self._lists_stored else []

    async def open(self, key: str) -> OpenTrace:
        """The trace with this id; raises UnknownTrace."""
        if key not in self._open:
            paths = (*self._files, *(Path(trace.path) for trace in self._stored()))
            path = next((it for it in paths if trace_id(it) == key), None)
            if path is None:
                raise UnknownTrace("no such trace")
            self._open[key] = OpenTrace(path)
            while len(self._open) > MOST_OPEN:
                await self._open.popitem(last=False)[1].close()
        self._open.move_to_end(key)
        trace = self._open[key]
        await trace.first_lines()
        return trace

    async def close(self) -> None:
        """Close all traces."""
        while self._open:
            await self._open.popitem()[1].close()


def trace_id(path: Path) -> str:
    """The id of a trace in URLs."""
    return hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _stat(path: Path, name: str) -> float:
    try:
        return float(getattr(path.stat(), name))
    except OSError:
        return 0.0
