"""Our agent with sessions that last, for the behaviours in `behaviours/lasting.json`: they end it and start it again.

It counts the prompts of a session and says them back. Its sessions are in the file that its argument names: a
variable of the environment would not do, as the Python SDK hands its agents only a few.
"""

import asyncio
import sys

import msgspec

from accord import Agent, Session, SqliteStore, Turn


class Count(msgspec.Struct):
    """What it keeps for a session."""

    prompts: int = 0


agent = Agent("interop-lasting", version="1.0.0", store=SqliteStore(sys.argv[1]), state=Count, unstable=True)


@agent.on_session
async def opened(session: Session) -> None:
    await session.modes.offer(["ask", "code"])


@agent.on_prompt
async def repeat(turn: Turn) -> None:
    count: Count = turn.session.state
    count.prompts += 1
    if turn.text == "wait":
        await turn.say("waiting")
        await asyncio.Event().wait()
    async with turn.tool("Count", kind="think") as tool:
        await tool.text(str(count.prompts))
    await turn.say(f"{count.prompts}: {turn.text}\n")


agent.run()
