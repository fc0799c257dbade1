"""A turn's plan: steps that are begun and done, or a document. The wire takes the whole plan each time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import PurePath
from typing import Any, cast, get_args

import msgspec

from accord.agent.plans import PlanChange
from accord.arguments import check_word, wrong_type
from accord.schema import v1
from accord.schema.sendable import check_sendable

PRIORITIES: tuple[str, ...] = get_args(v1.PlanEntryPriority)
STATUSES: tuple[str, ...] = get_args(v1.PlanEntryStatus)


class TurnPlan:
    """What the agent means to do, step by step.

    >>> async def work(turn):
    ...     plan = await turn.plan("Read the code", "Change it")
    ...     async with plan.step("Read the code"):
    ...         ...
    """

    def __init__(
        self,
        send: Callable[[PlanChange], Awaitable[None]],
        entries: Iterable[str | v1.PlanEntry],
        plan_id: str | None = None,
    ) -> None:
        self._send = send
        self.id = None if plan_id is None else v1.PlanId(plan_id)
        """The plan's id among the plans of the session; None for the plan that has none."""
        self.entries = [_entry("turn.plan()", it) for it in entries]
        """The steps as they are now."""

    async def start(self, step: int | str) -> None:
        """This step, by its place or its words, is being worked on."""
        await self.mark(step, "in_progress")

    async def done(self, step: int | str) -> None:
        """This step is done."""
        await self.mark(step, "completed")

    async def mark(self, step: int | str, status: v1.PlanEntryStatus) -> None:
        """Give a step, by its place or its words, this status: `pending`, `in_progress` or `completed`."""
        check_word("status", status, STATUSES)
        place = self._place(step)
        self.entries[place] = msgspec.structs.replace(self.entries[place], status=status)
        await self.send()

    async def add(self, *entries: str | v1.PlanEntry) -> None:
        """More steps, at the end."""
        self.entries += [_entry("plan.add()", it) for it in entries]
        await self.send()

    @asynccontextmanager
    async def step(self, step: int | str) -> AsyncGenerator[None]:
        """This step, from its beginning to its end; one that fails stays begun."""
        await self.start(step)
        yield
        await self.done(step)

    async def send(self) -> None:
        """Send the whole plan to the client."""
        # agent-plan, Updating Plans: every update holds all entries.
        entries = list(self.entries)
        await self._send(v1.Plan(entries) if self.id is None else v1.PlanUpdate(v1.PlanItems(self.id, entries)))

    async def remove(self) -> None:
        """Take the plan away, because it no longer applies."""
        self.entries.clear()
        await self._send(v1.Plan([]) if self.id is None else v1.PlanRemoved(self.id))

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
    """A plan as Markdown text or as a file; `turn.plan_document(...)` makes it.

    >>> async def work(turn):
    ...     document = await turn.plan_document("# Plan")
    ...     await document.replace("# A better plan")
    """

    def __init__(
        self, send: Callable[[PlanChange], Awaitable[None]], plan_id: v1.PlanId, uri_of: Callable[[PurePath], str]
    ) -> None:
        self.id = plan_id
        """The plan's id among the plans of the session."""
        self._send = send
        self._uri_of = uri_of

    async def replace(self, content: str | PurePath) -> None:
        """Show this in its place: text is Markdown, a `Path` is a file."""
        plan: v1.PlanUpdateContent
        if isinstance(content, PurePath):
            plan = v1.PlanFile(self.id, self._uri_of(content))
        elif isinstance(cast("object", content), str):
            plan = v1.PlanMarkdown(self.id, content)
        else:
            raise wrong_type("turn.plan_document()", "Markdown as text, or a Path", content)
        await self._send(v1.PlanUpdate(plan))

    async def remove(self) -> None:
        """Take the plan away, because it no longer applies."""
        await self._send(v1.PlanRemoved(self.id))


def _entry(call: str, entry: Any) -> v1.PlanEntry:
    """A step that an author gave; raises TypeError or ValueError for an invalid one."""
    if isinstance(entry, str):
        return v1.PlanEntry.of(entry)
    if not isinstance(entry, v1.PlanEntry):
        hint = "pass each step by itself: *steps" if isinstance(entry, list | tuple) else ""
        raise wrong_type(call, "steps, each text or a PlanEntry", cast("object", entry), hint)
    check_word(f"{call}: priority", entry.priority, PRIORITIES)
    check_word(f"{call}: status", entry.status, STATUSES)
    check_sendable(call, entry)
    return entry
