"""An agent whose turns fail in the way that their prompt names: `python failing_agent.py [debug]`."""

from __future__ import annotations

import asyncio
import os
import sys

import accord

agent = accord.Agent("failing", debug="debug" in sys.argv)


@agent.on_prompt
async def fail(turn: accord.Turn) -> None:
    way, _, rest = turn.text.partition(" ")
    match way:
        case "raise":
            raise ValueError(rest)
        case "read":
            await turn.client.read_text_file(rest)
        case "read-in-a-group":
            async with asyncio.TaskGroup() as group:
                group.create_task(turn.client.read_text_file(rest))
        case "die":
            sys.stderr.write("one\n\x1b[31mtwo\n")
            sys.stderr.flush()
            os._exit(3)
        case _:
            sys.stderr.write("".join(f"line {number}\n" for number in range(int(rest))))
            await turn.say("said")


if __name__ == "__main__":
    agent.run()
