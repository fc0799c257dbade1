"""`Budget`: how much one prompt may cost, how many rounds of tools and how much time it may take.

    usage_update, tool_call ─▶ BudgetWatch ─▶ near a limit: `ask`, once      ─▶ yes: the limit grows by itself
                      clock ─▶             ─▶ past it: the turn is cancelled, and `outcome.exceeded` says which

A limit waits for the answer of a question about it, for at most `ANSWER_WITHIN` seconds: fast tools may begin the next
round before anybody can read a question.

An agent reports its cost after it has spent it, so the last step may exceed the limit. Nothing is counted for a prompt
without a budget.
"""

# The private members of a session and a reply are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, cast

from accord._internal.tasks import in_thread_of_user
from accord.client.reply import BudgetField, Reply
from accord.mistakes import check_callable, wrong_type
from accord.session import updates

NEAR = 0.8
"""The share of the cost and of the time at which `ask` is called; of turns, it is the last one."""

ANSWER_WITHIN = 60.0
"""Seconds for which a limit that was passed waits for the open question about it."""


@dataclass(frozen=True, slots=True)
class BudgetQuestion:
    """Whether a turn may continue past a limit that it comes near to."""

    limit: BudgetField
    """The limit: `"max_cost"`, `"max_turns"` or `"max_time"`."""
    spent: float
    """The amount that the turn has spent so far."""
    most: float
    """The amount it may spend now; a yes adds the budget's value once more."""
    unit: str
    """The unit: the currency of the cost, `"turns"` or `"seconds"`."""

    def __str__(self) -> str:
        """Describe what was spent.

        >>> str(BudgetQuestion("max_cost", 0.4125, 0.5, "USD")), str(BudgetQuestion("max_time", 48.02, 60, "seconds"))
        ('0.41 of 0.5 USD', '48 of 60 seconds')
        """
        digits = 2 if self.limit == "max_cost" else None
        return f"{round(self.spent, digits):g} of {self.most:g} {self.unit}"


@dataclass(frozen=True, slots=True)
class Budget:
    """The most one prompt may cost, and how many rounds of tools and how many seconds it may take.

        budget = accord.Budget(max_cost=0.50, max_turns=20, max_time=600)
        outcome = await session.prompt("Fix the tests", budget=budget)
        if outcome.exceeded:
            print("stopped by", outcome.exceeded)

    Past a limit the turn is cancelled, and `outcome.exceeded` is the limit's name. The cost is the agent's report for
    the session since the prompt, in the agent's currency; the cost of an agent that reports none is not limited. A turn
    is a round in which the agent uses tools; calls that overlap are one round.

    `ask(question)` is called once near each limit, while the agent works on. If it returns True, the limit grows by
    its own value; False cancels the turn at once. A limit waits a minute for the answer, and then ends the turn.
    """

    _: KW_ONLY
    max_cost: float | None = None
    """The most the turn may cost, in the currency that the agent reports."""
    max_turns: int | None = None
    """The most rounds in which the agent may use tools."""
    max_time: float | None = None
    """Seconds that the turn may take."""
    ask: Callable[[BudgetQuestion], bool | Awaitable[bool]] | None = None
    """Asks whether the turn may continue past a limit."""

    def __post_init__(self) -> None:
        """Reject values that limit nothing."""
        most: Any
        for name, most in self.limits.items():
            is_number = isinstance(most, int | float) and not isinstance(most, bool)
            if not is_number or (name == "max_turns" and not isinstance(most, int)):
                raise wrong_type(f"Budget({name}=...)", "a whole number" if name == "max_turns" else "a number", most)
            if not 0 < most < float("inf"):
                raise ValueError(f"Budget({name}=...) must be positive and finite, got {most!r}")
        if self.ask is not None:
            check_callable("Budget(ask=...)", self.ask)

    @property
    def limits(self) -> dict[BudgetField, float]:
        """The limits that are set, by their names."""
        names = cast("list[BudgetField]", [it.name for it in fields(self) if it.name.startswith("max_")])
        return {name: most for name in names if (most := getattr(self, name)) is not None}


class BudgetWatch:
    """Counts what one turn spends, and cancels it past its budget."""

    def __init__(self, budget: Budget, reply: Reply) -> None:
        self._budget = budget
        self._session = reply._session
        self._reply = reply
        self._most = budget.limits
        """The present limits."""
        self._last: dict[BudgetField, float] = {}
        """The latest amounts."""
        self._cost_before = self._cost()
        self._rounds = 0
        self._seen: set[str] = set()
        self._running: set[str] = set()
        self._asked: set[BudgetField] = set()
        self._asking: dict[BudgetField, asyncio.Task[None]] = {}
        """The open questions."""
        self._late: dict[BudgetField, asyncio.TimerHandle] = {}
        """The ends of the limits that wait for an answer."""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._stop_counting = self._session.on_change(self._count)

    async def run(self) -> None:
        """Watch the turn until it has ended."""
        try:
            if self._reply._posted is None:
                await self._reply._until_sent()
            self._began = self._loop.time()
            self._look_at_time()
            await self._reply._until_finished()
        finally:
            self._stop_counting()
            if self._timer is not None:
                self._timer.cancel()
            for asking in self._asking.values():
                asking.cancel()
            for late in self._late.values():
                late.cancel()

    def _cost(self) -> float:
        usage = self._session.state.usage
        return usage.cost.amount if usage is not None and usage.cost else 0.0

    def _count(self, update: object) -> None:
        """Count a change of the session, if it is one of this turn."""
        if self._reply not in self._session._current_turns():
            self._cost_before = self._cost()
        elif isinstance(update, updates.UsageUpdate):
            self._spent("max_cost", self._cost() - self._cost_before)
        elif isinstance(update, updates.ToolCallUpdate):
            call = update.tool_call_id
            if call not in self._seen:
                self._seen.add(call)
                if not self._running:  # a model requests overlapping calls at once, and continues with all results
                    self._rounds += 1
                    self._spent("max_turns", self._rounds)
                self._running.add(call)
            if update.status in ("completed", "failed", "cancelled"):
                self._running.discard(call)

    def _look_at_time(self) -> None:
        if (most := self._most.get("max_time")) is None or self._reply.done:
            return
        self._spent("max_time", self._loop.time() - self._began)
        is_asked = self._budget.ask is None or "max_time" in self._asked
        most = self._most["max_time"] if is_asked else self._near("max_time", most)
        if "max_time" not in self._late:
            self._timer = self._loop.call_at(self._began + most, self._look_at_time)

    def _spent(self, limit: BudgetField, spent: float) -> None:
        most = self._most.get(limit)
        if most is None or self._reply.done:
            return
        self._last[limit] = spent
        if spent > most or (spent == most and limit != "max_turns"):
            if limit not in self._asking:
                self._stop(limit)
            elif limit not in self._late:
                self._late[limit] = self._loop.call_later(ANSWER_WITHIN, self._stop, limit)
        elif self._budget.ask is not None and limit not in self._asked and spent >= self._near(limit, most):
            self._asked.add(limit)
            asking = self._ask(self._budget.ask, BudgetQuestion(limit, spent, most, self._unit(limit)))
            self._asking[limit] = self._session._remote._tasks.start(asking, f"the question about {limit}")

    def _near(self, limit: BudgetField, most: float) -> float:
        return most if limit == "max_turns" else most * NEAR

    def _unit(self, limit: BudgetField) -> str:
        usage = self._session.state.usage
        currency = usage.cost.currency if usage is not None and usage.cost else ""
        return {"max_cost": currency, "max_turns": "turns", "max_time": "seconds"}[limit]

    async def _ask(self, ask: Callable[[BudgetQuestion], bool | Awaitable[bool]], question: BudgetQuestion) -> None:
        limit = question.limit
        if not await in_thread_of_user(ask)(question):
            self._stop(limit)
            return
        if (late := self._late.pop(limit, None)) is not None:
            late.cancel()
        del self._asking[limit]
        spent = self._loop.time() - self._began if limit == "max_time" else self._last[limit]
        self._most[limit] = max(self._most[limit], spent) + self._budget.limits[limit]
        self._asked.discard(limit)
        if limit == "max_time":
            if self._timer is not None:
                self._timer.cancel()
            self._look_at_time()

    def _stop(self, limit: BudgetField) -> None:
        self._reply._exceeded = self._reply._exceeded or limit
        self._reply.request_cancel()
