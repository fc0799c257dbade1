"""An agent that delegates: started as a program by the tests of subagents, and used as an object by others."""

from __future__ import annotations

import asyncio

import accord

agent = accord.Agent("delegates")


@agent.on_prompt
async def delegate(turn: accord.Turn) -> None:
    async with turn.subagent("Look for callers", "Who calls parse()?", cancellable=True) as subagent:
        await subagent.say("Two places")
        if turn.text == "ask":
            async with subagent.tool("Delete", kind="delete") as tool:
                await subagent.say(f": {bool(await tool.ask())}")
        if turn.text == "wait":
            await asyncio.Event().wait()
    await turn.say("cancelled" if subagent.was_cancelled else "done")


if __name__ == "__main__":
    agent.run()
