"""Plans of frameworks: tools with which a model writes down its steps. PURE."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta, Struct

from accord import v1
from accord.schema.base import Json

LISTS = {"write_todos": "todos", "TodoWrite": "todos", "todo_write": "todos", "update_plan": "plan"}
"""The tools that write a plan, and the argument that holds its steps."""


class Step(Struct):
    """A step, in the words of any of these tools."""

    status: Literal["pending", "in_progress", "completed"] = "pending"
    content: Annotated[str, Meta(min_length=1)] | None = None
    step: Annotated[str, Meta(min_length=1)] | None = None


def plan_in(name: str, arguments: Json) -> list[v1.PlanEntry]:
    """The steps that a call of this tool writes down; empty for any other tool."""
    member = LISTS.get(name)
    if member is None or not isinstance(arguments, dict):
        return []
    try:
        steps = msgspec.convert(cast("dict[str, Json]", arguments).get(member), list[Step])
    except msgspec.ValidationError:
        return []
    named = [(step, step.content or step.step) for step in steps]
    return [v1.PlanEntry(text, priority="medium", status=step.status) for step, text in named if text]
