"""The work of subagents as lines for people, each of which names its subagent; its words follow its end. PURE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from accord.cli.work import DETAILS, Line, Span, Work, said_of
from accord.printable import label, printable
from accord.schema import v1

if TYPE_CHECKING:
    from accord.client.remote_subagent import RemoteSubagent

NAME = 30
"""Columns of a subagent's title before its lines."""
KEPT = 100
"""Subagents whose work is followed at the same time."""
WORDS = 20_000
"""Characters of what a subagent says that are kept until it ends."""
SHOWN = 3
"""Lines of what a subagent said that are shown when it ends; with details, more."""
COLUMNS = 300


class SubagentWork:
    """The work of the subagents of one turn."""

    def __init__(self, work: Callable[[], Work], *, details: bool) -> None:
        self._new_work = work
        self._most = DETAILS if details else SHOWN
        self._work: dict[str, Work] = {}
        self._said: dict[str, str] = {}

    def lines(self, subagent: RemoteSubagent, update: v1.SessionUpdate) -> Iterator[Line]:
        """The lines that an update of a subagent adds; what it says is kept."""
        if (said := said_of(update)) is not None:
            text = said.text if isinstance(said, v1.TextContent) else ""
            self._said[subagent.id] = (self._said.get(subagent.id, "") + text)[-WORDS:]
            return
        name = label(subagent.title or subagent.id, NAME)
        for line in self._work_of(subagent.id).lines(update):
            yield line._replace(spans=[Span(f"{name}: ", "dim"), *line.spans], indent=line.indent + 2)

    def ended(self, update: v1.SessionUpdate) -> Iterator[Line]:
        """What a subagent has said, when its session tells that it has ended."""
        if not isinstance(update, v1.SubagentUpdate) or not isinstance(update.state, v1.IdleStateUpdate):
            return
        self._work.pop(update.session_id, None)
        text = self._said.pop(update.session_id, "").strip()
        lines = printable(text).split("\n") if text else []
        for line in lines[: self._most]:
            yield Line([Span(line.expandtabs(4)[:COLUMNS], "dim")], indent=4)
        if len(lines) > self._most:
            yield Line([Span(f"and {len(lines) - self._most:,} more lines", "dim")], indent=4)

    def _work_of(self, subagent: str) -> Work:
        if subagent not in self._work:
            self._work[subagent] = self._new_work()
            if len(self._work) > KEPT:
                del self._work[next(iter(self._work))]
        return self._work[subagent]
