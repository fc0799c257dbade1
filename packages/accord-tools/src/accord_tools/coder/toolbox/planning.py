"""A tool with which the model shows what it means to do."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from accord import v1
from accord_tools.coder.toolbox.definition import Given, ToolDefinition, ToolUse


class Step(Struct):
    text: Annotated[str, Meta(min_length=1, description="What is done, in a few words.")]
    status: Literal["pending", "in_progress", "completed"] = "pending"


class Planning(Struct):
    steps: Annotated[list[Step], Meta(description="All steps, in order, each with how it stands.")]


async def plan(use: ToolUse, asked: Planning) -> Given:
    entries = [v1.PlanEntry(step.text, priority="medium", status=step.status) for step in asked.steps]
    await use.turn.plan(*entries)
    return Given("The plan is shown.")


PLANNING = (
    ToolDefinition(
        name="show_plan",
        description="Show the user the steps of a longer task, and again whenever the status of a step changes.",
        arguments=Planning,
        run=plan,
    ),
)
