"""Plans: what an agent means to do, step by step. Page: agent-plan; proposal: plan-operations."""

from __future__ import annotations

from typing import Literal, NewType, TypeAlias

from accord.schema.base import Model, Open, Tolerant, ValidItems, needs, unstable

PlanEntryPriority = Literal["high", "medium", "low"]
PlanEntryStatus = Literal["pending", "in_progress", "completed"]
PlanId = NewType("PlanId", str)


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


class Plan(Model, tag_field="sessionUpdate", tag="plan"):
    """The whole plan in its present state; it replaces the one before."""

    entries: Tolerant[ValidItems[PlanEntry]]

    @classmethod
    def of(cls, *entries: str | PlanEntry) -> Plan:
        return cls([PlanEntry.of(entry) if isinstance(entry, str) else entry for entry in entries])


@unstable
class PlanItems(Model, tag_field="type", tag="items"):
    """A plan as a list of steps."""

    plan_id: PlanId
    entries: Tolerant[ValidItems[PlanEntry]]


@unstable
class PlanFile(Model, tag_field="type", tag="file"):
    """A plan that is stored in a file."""

    plan_id: PlanId
    uri: str


@unstable
class PlanMarkdown(Model, tag_field="type", tag="markdown"):
    """A plan as Markdown text."""

    plan_id: PlanId
    content: str


PlanUpdateContent: TypeAlias = Open[PlanItems | PlanFile | PlanMarkdown]


@unstable
@needs("plan")
class PlanUpdate(Model, tag_field="sessionUpdate", tag="plan_update"):
    """One of several plans, in its present state; for clients that declared `plan`."""

    plan: PlanUpdateContent


@unstable
@needs("plan")
class PlanRemoved(Model, tag_field="sessionUpdate", tag="plan_removed"):
    """A plan that no longer applies; the client removes it."""

    plan_id: PlanId
