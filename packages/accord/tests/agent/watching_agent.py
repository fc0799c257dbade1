"""An agent over standard streams that goes on step by step: `watching_agent.py STORE FIFO`.

A prompt `steps N` says N numbers, one for each line that it reads from the FIFO. `who` says the number of the process.
"""

import asyncio
import os
import sys

from accord import Agent

agent = Agent("stepping", store=sys.argv[1])


@agent.on_prompt
async def work(turn):
    match turn.text.split():
        case ["steps", number]:
            reader = await asyncio.to_thread(open, sys.argv[2])
            with reader:
                for step in range(int(number)):
                    await asyncio.to_thread(reader.readline)
                    await turn.say(f"{step} ")
        case ["who"]:
            await turn.say(str(os.getpid()))
        case _:
            await turn.say(turn.text)


agent.run()
