"""Plans: steps with a status, or a document. The wire takes the whole plan each time.

Clients that declared `plan` take several plans, each with an id, as steps or as Markdown, perhaps with its file. Any
other client takes one list of steps, which replaces the one before. `SessionPlans` makes that list: the steps of all
plans that were not removed, in the order in which the plans began. The steps of a Markdown plan are the items of its
lists.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path, PurePath
from typing import Any, cast

import msgspec

from accord.mistakes import check_word, wrong_type
from accord.schema.base import JsonObject, Unknown, words_of
from accord.schema.sendable import check_sendable, with_meta
from accord.session import updates

_ITEM = r"(?m)^\s*(?:[-*+]|\d+[.)])\s+(?:\[(?P<mark>[ xX])\]\s+)?(?P<text>\S.*?)\s*$"
_HEADING = r"(?m)^[#>\s]*(?P<text>\S.*?)\s*$"

PlanChange = updates.PlanUpdate | updates.PlanRemoved


class SessionPlans:
    """The plans that a session shows, and the updates that this client takes for them."""

    def __init__(self, client_shows: Callable[[str], bool]) -> None:
        self._client_shows = client_shows
        self._steps: dict[str, list[updates.PlanEntry]] = {}
        """The steps of each plan by its id, for a client that takes one plan."""

    def fitted(self, change: PlanChange) -> PlanChange:
        """Return the update that tells this client of the change."""
        # rfd-plan-operations, Client Capabilities: without `plan`, the agent falls back to the update `plan`.
        if self._client_shows("plan"):
            return change
        if isinstance(change, updates.PlanRemoved):
            self._steps.pop(change.plan_id, None)
        elif not isinstance(change.plan, Unknown):
            self._steps[change.plan.plan_id] = steps_of(change.plan)
        return updates.PlanUpdate.of(updates.MAIN_PLAN, *(step for steps in self._steps.values() for step in steps))


def steps_of(plan: updates.PlanItems | updates.PlanMarkdown) -> list[updates.PlanEntry]:
    """Return a plan as a list of steps.

    >>> plan = updates.PlanMarkdown(updates.PlanId("p"), "# Plan\\n- [x] Read\\n- [ ] Write")
    >>> [(it.content, it.status) for it in steps_of(plan)]
    [('Read', 'completed'), ('Write', 'pending')]
    """
    if isinstance(plan, updates.PlanItems):
        return plan.entries
    items = [
        updates.PlanEntry.of(it["text"], status="completed" if it["mark"] in ("x", "X") else "pending")
        for it in re.finditer(_ITEM, plan.content)
    ]
    heading = re.search(_HEADING, plan.content)
    return items or ([] if heading is None else [updates.PlanEntry.of(heading["text"])])


PRIORITIES = words_of(updates.PlanEntryPriority)
STATUSES = words_of(updates.PlanEntryStatus)


class TurnPlan:
    """The agent's plan, step by step.

    >>> async def work(turn):
    ...     plan = await turn.plan("Read the code", "Change it")
    ...     async with plan.step("Read the code"):
    ...         ...
    """

    def __init__(
        self,
        send: Callable[[PlanChange], Awaitable[None]],
        entries: Iterable[str | updates.PlanEntry],
        plan_id: str | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        self._send = send
        self.id: updates.PlanId = updates.PlanId(plan_id or updates.MAIN_PLAN)
        """The plan's id among the plans of the session."""
        self.entries: list[updates.PlanEntry] = [_entry("turn.plan()", it) for it in entries]
        """The steps as they are now."""
        self._meta = meta

    async def start(self, step: int | str, *, meta: JsonObject | None = None) -> None:
        """Mark this step, by its index or text, as being worked on, and set its `_meta`."""
        await self.mark(step, "in_progress", meta=meta)

    async def done(self, step: int | str, *, meta: JsonObject | None = None) -> None:
        """Mark this step as done, and set its `_meta`."""
        await self.mark(step, "completed", meta=meta)

    async def mark(self, step: int | str, status: updates.PlanEntryStatus, *, meta: JsonObject | None = None) -> None:
        """Set the status of a step, by its index or text: `pending`, `in_progress`, `completed` or `cancelled`.

        `meta` is the step's `_meta` from now on.
        """
        check_word("status", status, STATUSES)
        place = self._place(step)
        self.entries[place] = with_meta("plan.mark", msgspec.structs.replace(self.entries[place], status=status), meta)
        await self.send()

    async def add(self, *entries: str | updates.PlanEntry, meta: JsonObject | None = None) -> None:
        """Append steps, each with this `_meta`."""
        self.entries += [with_meta("plan.add", _entry("plan.add()", it), meta) for it in entries]
        await self.send()

    @asynccontextmanager
    async def step(self, step: int | str, *, meta: JsonObject | None = None) -> AsyncGenerator[None]:
        """Work on this step, from its beginning to its end; one that fails stays in progress."""
        await self.start(step, meta=meta)
        yield
        await self.done(step)

    async def send(self) -> None:
        """Send the whole plan to the client."""
        # agent-plan, Updating Plans: every update holds all entries.
        await self._send(updates.PlanUpdate(updates.PlanItems(self.id, list(self.entries)), meta=self._meta))

    async def remove(self) -> None:
        """Remove the plan, because it no longer applies."""
        self.entries.clear()
        await self._send(updates.PlanRemoved(self.id, meta=self._meta))

    def _place(self, step: int | str) -> int:
        if isinstance(step, int):
            if not -len(self.entries) <= step < len(self.entries):
                raise ValueError(f"step {step} is not in the plan, which has {len(self.entries)} steps; count from 0")
            return step
        for place, entry in enumerate(self.entries):
            if entry.content == step:
                return place
        raise ValueError(f"step {step!r} is not in the plan; its steps are {[it.content for it in self.entries]}")


class PlanDocument:
    """A plan as Markdown, given as text or in a file; `turn.plan_document(...)` makes it.

    >>> async def work(turn):
    ...     document = await turn.plan_document("# Plan")
    ...     await document.replace("# A better plan")
    """

    def __init__(
        self,
        send: Callable[[PlanChange], Awaitable[None]],
        plan_id: updates.PlanId,
        cwd: PurePath,
        meta: JsonObject | None = None,
    ) -> None:
        self.id: updates.PlanId = plan_id
        """The plan's id among the plans of the session."""
        self._send = send
        self._cwd = cwd
        self._meta = meta

    async def replace(self, content: str | PurePath) -> None:
        """Replace the document: text is Markdown, a `Path` is a file with Markdown, which is read now."""
        if isinstance(content, PurePath):
            path = Path(self._cwd / content)
            text = await asyncio.to_thread(path.read_text, "utf-8")
            plan = updates.PlanMarkdown(self.id, text, str(path))
        elif isinstance(cast("object", content), str):
            plan = updates.PlanMarkdown(self.id, content)
        else:
            raise wrong_type("turn.plan_document()", "Markdown as text, or a Path", content)
        await self._send(updates.PlanUpdate(plan, meta=self._meta))

    async def remove(self) -> None:
        """Remove the plan, because it no longer applies."""
        await self._send(updates.PlanRemoved(self.id, meta=self._meta))


def _entry(call: str, entry: Any) -> updates.PlanEntry:
    """Return an author's step; raises TypeError or ValueError for an invalid one."""
    if isinstance(entry, str):
        return updates.PlanEntry.of(entry)
    if not isinstance(entry, updates.PlanEntry):
        hint = "pass each step by itself: *steps" if isinstance(entry, list | tuple) else ""
        raise wrong_type(call, "steps, each text or a PlanEntry", cast("object", entry), hint)
    check_word(f"{call}: priority", entry.priority, PRIORITIES)
    check_word(f"{call}: status", entry.status, STATUSES)
    check_sendable(call, entry)
    return entry
