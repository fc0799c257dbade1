"""The plans of a session, for clients that know one plan only. PURE.

Clients that declared `plan` take several plans, each with an id, as steps, as Markdown or as a file. Any other client
takes one list of steps, which replaces the one before. `SessionPlans` makes that list: the steps of all plans that were
not removed, in the order in which the plans began. The steps of a Markdown plan are the items of its lists, and a file
is one step that names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from accord.schema import v1
from accord.schema.base import Unknown

_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[(?P<mark>[ xX])\]\s+)?(?P<text>\S.*?)\s*$", re.MULTILINE)
_HEADING = re.compile(r"^[#>\s]*(?P<text>\S.*?)\s*$", re.MULTILINE)

PlanChange = v1.Plan | v1.PlanUpdate | v1.PlanRemoved


class SessionPlans:
    """The plans that a session shows, and the updates that this client takes for them."""

    def __init__(self, client_shows: Callable[[str], bool]) -> None:
        self._client_shows = client_shows
        self._steps: dict[str | None, list[v1.PlanEntry]] = {}
        """The steps of each plan by its id, for a client that takes one plan; the plan without an id is None."""

    def fitted(self, change: PlanChange) -> PlanChange:
        """The update that tells this client of the change."""
        # rfd-plan-operations, Client Capabilities: without `plan`, the agent falls back to the update `plan`.
        if self._client_shows("plan"):
            return change
        if isinstance(change, v1.PlanRemoved):
            self._steps.pop(change.plan_id, None)
        elif isinstance(change, v1.PlanUpdate):
            plan = change.plan
            if not isinstance(plan, Unknown):
                self._steps[plan.plan_id] = steps_of(plan)
        else:
            self._steps[None] = change.entries
        return v1.Plan([step for steps in self._steps.values() for step in steps])


def steps_of(plan: v1.PlanItems | v1.PlanMarkdown | v1.PlanFile) -> list[v1.PlanEntry]:
    """A plan as a list of steps.

    >>> plan = v1.PlanMarkdown(v1.PlanId("p"), "# Plan\\n- [x] Read\\n- [ ] Write")
    >>> [(it.content, it.status) for it in steps_of(plan)]
    [('Read', 'completed'), ('Write', 'pending')]
    """
    if isinstance(plan, v1.PlanItems):
        return plan.entries
    if isinstance(plan, v1.PlanFile):
        return [v1.PlanEntry.of(f"See {plan.uri}")]
    items = [
        v1.PlanEntry.of(it["text"], status="completed" if it["mark"] in ("x", "X") else "pending")
        for it in _ITEM.finditer(plan.content)
    ]
    heading = _HEADING.search(plan.content)
    return items or ([] if heading is None else [v1.PlanEntry.of(heading["text"])])
