"""An agent over standard streams that is killed at a step of its store's work: `mortal_agent.py FILE STEP`.

A step is a statement that is about to run in the database, on any connection, whatever it is for. Step 0 never comes.
"""

import os
import signal
import sys
from itertools import count

import msgspec

from accord import Agent, SqliteStore


class Count(msgspec.Struct):
    prompts: int = 0


class MortalStore(SqliteStore):
    """Dies before the given statement, the first of which runs once the file is open."""

    async def open(self):
        await super().open()
        steps = count(1)

        def step(_):
            if next(steps) == last:
                os.kill(os.getpid(), signal.SIGKILL)

        for connection in (self._open.quick, self._open.patient):
            connection.set_trace_callback(step)


file, last = sys.argv[1], int(sys.argv[2])
agent = Agent("mortal", store=MortalStore(file), state=Count, unstable=True)


@agent.on_session
async def opened(session):
    await session.modes.offer(["ask", "code"])


@agent.on_prompt
async def work(turn):
    turn.session.state.prompts += 1
    await turn.say(f"{turn.session.state.prompts}")
    await turn.think("hm")
    async with turn.tool("Work", kind="edit") as tool:
        await tool.text("half")
        await tool.text("done")
    await turn.session.modes.set("code" if turn.session.modes.current == "ask" else "ask")
    for word in turn.text.split():
        await turn.say(word)


agent.run()
