"""A command that goes on in the background, and reports by itself when it is done."""

from __future__ import annotations

from accord import Turn
from accord_tools.demo.memory import pause
from accord_tools.demo.telling import number

STEPS = 5
MOST_STEPS = 3_600
STEP_BEATS = 33
"""Pauses in one step: about a second."""


async def watch(turn: Turn, text: str) -> None:
    steps = number(text, STEPS, MOST_STEPS)
    turn.session.start(_watch(turn, steps))
    await turn.say(f"I watch in the background for {steps:,} steps. Go on, or cancel it alone.")


async def _watch(turn: Turn, steps: int) -> None:
    async with turn.tool("Watch", kind="other", background=True, cancellable=True) as tool:
        for done in range(1, steps + 1):
            await tool.text(f"Step {done} of {steps}: nothing happens.\n")
            await pause(turn, STEP_BEATS)
    async with turn.session.work() as report:
        await report.say("You cancelled my watch." if tool.is_cancelled else "My watch is over: nothing has happened.")
