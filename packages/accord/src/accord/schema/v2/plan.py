"""Plans: what an agent means to do, step by step. Proposals: plan-variants, plan-operations.

Differs from version 1: every plan has an id and a `type`, and there may be several; words are open sets.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from accord.schema.base import Model, Open, ValidItems, every, words
from accord.schema.v1.plan import PlanFile, PlanId, PlanMarkdown

PlanEntryPriority: TypeAlias = Annotated[str, words("high", "medium", "low")]
PlanEntryStatus: TypeAlias = Annotated[str, words("pending", "in_progress", "completed", "cancelled")]


class PlanEntry(Model):
    """One step of a plan."""

    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus

    @classmethod
    def of(
        cls, content: str, *, status: PlanEntryStatus = "pending", priority: PlanEntryPriority = "medium"
    ) -> PlanEntry:
        return cls(content, priority, status)


class PlanItems(Model, tag_field="type", tag="items"):
    """A plan as a list of steps."""

    plan_id: PlanId
    entries: ValidItems[PlanEntry]


PlanUpdateContent: TypeAlias = Annotated[Open[PlanItems | PlanFile | PlanMarkdown], every("planId")]


class PlanUpdate(Model, tag_field="sessionUpdate", tag="plan_update"):
    """A plan in its present state; it replaces the one with the same id."""

    plan: PlanUpdateContent

    @classmethod
    def of(cls, plan_id: PlanId, *entries: str | PlanEntry) -> PlanUpdate:
        steps = [PlanEntry.of(entry) if isinstance(entry, str) else entry for entry in entries]
        return cls(PlanItems(plan_id, steps))
