"""Budgets of a prompt: what they count, and how a turn ends past one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import accord
from tests.client.conftest import Stage, staged
from tests.waiting import eventually


def spend(stage: Stage, amount: float) -> None:
    stage.update({"sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": {"amount": amount, "currency": "USD"}})


def call(stage: Stage, its_id: str, status: str) -> None:
    kind = "tool_call" if status == "pending" else "tool_call_update"
    stage.update({"sessionUpdate": kind, "toolCallId": its_id, "title": its_id, "status": status})


async def stopped(stage: Stage, prompt: Any) -> None:
    """Wait until the turn is cancelled, and end it as agents do."""
    await stage.agent.expect("session/cancel")
    stage.end(prompt, "cancelled")


async def test_a_turn_past_its_cost_is_cancelled_and_the_outcome_says_so() -> None:
    async with staged() as stage:
        session = await stage.session()
        spend(stage, 5.0)  # of before the prompt
        await eventually(lambda: session.state.usage is not None)
        reply = session.prompt("Hi", budget=accord.Budget(max_cost=0.5))
        prompt = await stage.agent.expect("session/prompt")
        spend(stage, 5.4)
        spend(stage, 5.6)
        await stopped(stage, prompt)
        outcome = await reply
        assert (outcome.stop_reason, outcome.exceeded) == ("cancelled", "max_cost")


async def test_rounds_of_tools_are_counted_and_calls_that_overlap_are_one_round() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("Hi", budget=accord.Budget(max_turns=1))
        prompt = await stage.agent.expect("session/prompt")
        for its_id in ("a", "b"):
            call(stage, its_id, "pending")
        for its_id in ("a", "b"):
            call(stage, its_id, "completed")
        stage.say("so far")
        assert await anext(reply.iter_text()) == "so far"
        assert not reply.cancelled
        call(stage, "c", "pending")
        await stopped(stage, prompt)
        assert (await reply).exceeded == "max_turns"


async def test_a_turn_past_its_time_is_cancelled() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("Hi", budget=accord.Budget(max_time=0.01))
        await stopped(stage, await stage.agent.expect("session/prompt"))
        assert (await reply).exceeded == "max_time"


async def test_a_turn_within_its_budget_ends_as_without_one() -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("Hi", budget=accord.Budget(max_cost=9, max_turns=9, max_time=1_000))
        prompt = await stage.agent.expect("session/prompt")
        spend(stage, 1.0)
        call(stage, "a", "pending")
        stage.end(prompt)
        outcome = await reply
        assert (outcome.stop_reason, outcome.exceeded) == ("end_turn", None)


async def test_a_yes_near_a_limit_adds_the_limit_once_more() -> None:
    asked: list[str] = []

    async def ask(question: accord.BudgetQuestion) -> bool:
        asked.append(str(question))
        return len(asked) < 3

    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("Hi", budget=accord.Budget(max_cost=1, ask=ask))
        prompt = await stage.agent.expect("session/prompt")
        for number, amount in enumerate((0.7, 0.85, 1.7), 1):
            spend(stage, amount)
            await eventually(lambda: len(asked) == max(0, number - 1))  # noqa: B023
        assert not reply.cancelled
        spend(stage, 2.5)
        await stopped(stage, prompt)  # by the no
        assert (await reply).exceeded == "max_cost"
    assert asked == ["0.85 of 1 USD", "1.7 of 2 USD", "2.5 of 3 USD"]


@pytest.mark.parametrize("limit", ["max_turns", "max_cost", "max_time"])
async def test_a_limit_waits_for_the_answer_to_its_question(limit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit == "max_time":
        monkeypatch.setattr("accord.client.budget.NEAR", 0.0)  # the question comes at once
    asked: list[str] = []
    answer = asyncio.Event()

    async def ask(question: accord.BudgetQuestion) -> bool:
        asked.append(question.limit)
        await answer.wait()
        return True

    async with staged() as stage:
        session = await stage.session()
        most: dict[str, Any] = {limit: 0.05 if limit == "max_time" else 1}
        reply = session.prompt("Hi", budget=accord.Budget(**most, ask=ask))
        prompt = await stage.agent.expect("session/prompt")
        for number in range(4):
            call(stage, f"t{number}", "pending")
            call(stage, f"t{number}", "completed")
            spend(stage, 0.9 + number)
        await eventually(lambda: session.state.usage is not None and session.state.usage.cost.amount == 3.9)
        await eventually(lambda: asked == [limit])
        if limit == "max_time":
            passed = asyncio.Event()  # after the limit's own timer, which began before
            asyncio.get_running_loop().call_later(0.05, passed.set)
            await passed.wait()
        assert not reply.cancelled
        answer.set()
        stage.end(prompt, "end_turn")
        assert (await reply).exceeded is None


async def test_a_question_that_nobody_answers_ends_the_turn_at_the_limit_and_is_withdrawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("accord.client.budget.ANSWER_WITHIN", 0.0)
    withdrawn: list[accord.BudgetQuestion] = []

    async def ask(question: accord.BudgetQuestion) -> bool:
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.append(question)
        return True

    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("Hi", budget=accord.Budget(max_turns=1, ask=ask))
        prompt = await stage.agent.expect("session/prompt")
        call(stage, "a", "pending")
        call(stage, "a", "completed")
        call(stage, "b", "pending")
        await stopped(stage, prompt)
        assert (await reply).exceeded == "max_turns"
        await eventually(lambda: withdrawn == [accord.BudgetQuestion("max_turns", 1, 1, "turns")])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_cost": 0}, r"Budget\(max_cost=...\) must be positive and finite, got 0"),
        ({"max_time": float("inf")}, "must be positive and finite, got inf"),
        ({"max_turns": 1.5}, r"Budget\(max_turns=...\) takes a whole number, got .*1.5"),
        ({"max_cost": "1"}, r"Budget\(max_cost=...\) takes a number"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        accord.Budget(**given)
