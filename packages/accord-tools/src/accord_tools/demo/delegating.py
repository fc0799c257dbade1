"""Commands that delegate to a subagent, compact the context, and show plans with ids."""

from __future__ import annotations

from accord import Turn
from accord_tools.demo.conversation import folder
from accord_tools.demo.memory import pause, words_so_far

DESIGN = "# Design\n\n- [x] Think\n- [ ] Write it down\n"
"""A plan in Markdown."""

BEATS = 8
"""Pauses in one step."""


async def subagent(turn: Turn) -> None:
    """Let a subagent look around in the folder."""
    async with turn.subagent("Look around", "What is in this folder?", cancellable=True) as looking:
        async with looking.tool("List the folder", kind="search") as tool:
            await pause(turn, BEATS)
            await tool.text(folder(turn.cwd))
        await looking.say(folder(turn.cwd))
        await pause(turn, BEATS)
        await looking.report("I have looked around.")
    await turn.say("You stopped my subagent." if looking.was_cancelled else "My subagent has looked around for me.")


async def compact(turn: Turn) -> None:
    """Replace what was said by a summary, which a model would do with its context."""
    words = await words_so_far(turn)
    async with turn.session.compaction() as compaction:
        await pause(turn, BEATS)
        await compaction.summary(f"You and I have said {words:,} words. ")
        await compaction.summary("That is all that I remember of them.")
    if compaction.is_shown:
        await turn.say("I made a summary of what we said. You still see all of it.")
    else:
        await turn.say("Your client shows no compactions; mine would have made a summary of what we said.")


async def plans(turn: Turn) -> None:
    """Show two plans beside each other, one of them as a document."""
    design = await turn.plan_document(DESIGN, id="design")
    steps = await turn.plan("Read the design", "Build it", id="work")
    for step in "Read the design", "Build it":
        async with steps.step(step):
            await pause(turn, BEATS)
    await design.remove()
    await turn.say("Those were two plans: a design in Markdown, which I took away, and the steps of my work.")
