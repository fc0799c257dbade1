"""A tool with which the model gives a part of the work to a subagent, which has a conversation of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from msgspec import Meta, Struct

from accord import Turn
from accord_tools.coder.conversation import Conversation
from accord_tools.coder.toolbox.definition import Given, ToolDefinition, ToolUse


class Delegating(Struct):
    title: Annotated[str, Meta(min_length=1, description="What the subagent does, in a few words.")]
    task: Annotated[str, Meta(min_length=1, description="All that it needs to know, and what it shall report.")]


def delegating(work: Callable[[Turn[Conversation], str], Awaitable[str]]) -> ToolDefinition:
    """The tool; `work` does a task as a turn of its own, and returns what is reported."""

    async def run(use: ToolUse, asked: Delegating) -> Given:
        async with use.turn.subagent(asked.title, asked.task, cancellable=True) as subagent:
            report = await work(subagent, asked.task)
            return Given(report or "It reports nothing.")
        return Given("The user has cancelled it.", failed=True)

    return ToolDefinition(
        name="delegate",
        description="Give a self-contained part of the work to a subagent, such as a search through many files.",
        arguments=Delegating,
        run=run,
    )
