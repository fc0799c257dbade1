"""`FoldedRecord`: what a session's record amounts to, with all that its replay needs.

    entries ──▶ SessionState          messages, tool calls, settings, as every reader of a session sees them
            └─▶ order                 what stands where: also compactions, subagents, and unknown updates
            └─▶ latest                the last update of each kind that replaces the one before

The state says what there is. The order says where it stands in the conversation. The latest updates are replayed as
they came, so that what the state does not show, such as their `_meta`, is not lost.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from accord.agent.survey import KINDS, Key
from accord.schema import v1
from accord.schema.base import Unknown
from accord.state import SessionState
from accord.state.values import Update

Place: TypeAlias = int | Key | Unknown
"""What stands at a place of the replay: an entry of the timeline, something with an id, or an unknown update."""

_WITH_ID = {tag: row for tag, row in KINDS.items() if row[0] != "call"}
"""By the tags of updates: what has an id and stands beside the timeline."""

_WHOLE = frozenset(("plan", "config_option_update", "current_mode_update"))
"""The tags of updates that replace the one before."""


class FoldedRecord:
    """What the entries of a record amount to so far."""

    def __init__(self) -> None:
        self.state = SessionState()
        """The entries, folded."""
        self.order: list[Place] = []
        """What stands in the conversation, in the order in which it began."""
        self.latest: dict[str, Any] = {}
        """The last update of each kind that replaces the one before, by its tag."""
        self.plans: dict[v1.PlanId, Any] = {}
        """The last update of each plan with an id; the latest is the last."""
        self._known: set[Key] = set()

    def add(self, update: Update) -> None:
        """Fold in the next entry."""
        before = len(self.state)
        self.state.add(update)
        if len(self.state) > before:
            self.order.append(before)
        elif isinstance(update, Unknown):
            if self.state.unknown and self.state.unknown[-1] is update:
                self.order.append(update)
        else:
            self._note(update)

    def _note(self, update: Any) -> None:
        tag = update.__struct_config__.tag
        if (row := _WITH_ID.get(tag)) is not None:
            kind, field = row
            key = kind, getattr(update, field)
            if key not in self._known:
                self._known.add(key)
                self.order.append(key)
        elif tag in _WHOLE:
            self.latest[tag] = update
        elif tag == "plan_update":
            plan_id = _plan_id(update.plan)
            self.plans.pop(plan_id, None)
            self.plans[plan_id] = update
        elif tag == "plan_removed":
            self.plans.pop(update.plan_id, None)

    @property
    def plan(self) -> v1.Plan | None:
        """The plan without an id, unless plans with ids have taken its place and are gone."""
        plan: v1.Plan | None = self.latest.get("plan")
        is_current = plan is not None and (self.state.plan_id is not None or self.state.plan == plan.entries)
        return plan if is_current else None


def _plan_id(plan: Any) -> v1.PlanId:
    return v1.PlanId(str(plan.raw.get("planId", ""))) if isinstance(plan, Unknown) else plan.plan_id
