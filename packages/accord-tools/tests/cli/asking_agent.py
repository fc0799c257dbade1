"""An agent for tests of `accord run`: it does at once what the first word of its prompt says.

python asking_agent.py
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import accord
from accord import v1
from accord.errors import PeerError

agent = accord.Agent("asking")


@agent.on_prompt
async def work(turn: accord.Turn) -> None:
    what, _, rest = turn.text.partition(" ")
    await {
        "order": order,
        "command": command,
        "write": write,
        "wait": wait,
        "raise": fail,
        "die": die,
        "all": everything,
    }[what](turn, rest)


async def order(turn: accord.Turn, _: str) -> None:
    for number in range(100):
        await turn.say(f"before {number}\n")
    async with turn.tool("Change it", kind="edit") as tool:
        await tool.diff(turn.cwd / "a.txt", "same\nold\n", "same\nnew\n")
        decision = await tool.ask()
    await turn.say(f"after {decision.allowed}\n")


async def command(turn: accord.Turn, line: str) -> None:
    async with turn.tool("Tidy up", kind="execute", raw_input={"command": line}) as tool:
        decision = await tool.ask()
    await turn.say("allowed\n" if decision.allowed else "refused\n")


async def write(turn: accord.Turn, name: str) -> None:
    try:
        await turn.client.write_text_file(name, "text\n")
        await turn.say("written\n")
    except PeerError as error:
        await turn.say(f"{error.message}\n")


async def wait(turn: accord.Turn, fifo: str) -> None:
    """Work until a test writes to this FIFO."""
    async with turn.tool("Think hard", kind="think"):
        await asyncio.to_thread(Path(fifo).read_text)
    await turn.say("the end\n")


async def die(turn: accord.Turn, _: str) -> None:
    os._exit(9)


async def fail(turn: accord.Turn, _: str) -> None:
    await turn.say("so far")
    print("\n".join(f"line {number}" for number in range(30)), file=sys.stderr, flush=True)
    raise ValueError("broken by hand")


async def everything(turn: accord.Turn, _: str) -> None:
    """A bit of all work, with an answer in two parts."""
    await turn.think("Let me think about this for longer than one row of a terminal of eighty columns is wide.")
    await turn.say("First part.")
    steps = await turn.plan("one", "two")
    async with steps.step("one"), turn.tool("Edit a.txt", kind="edit") as tool:
        await tool.diff(turn.cwd / "a.txt", "old\n", "new\nmore\n")
    await turn.usage(500, 1_000)
    await turn.say(v1.ImageContent.from_bytes(b"no picture", "image/png"))
    await turn.say("Second part.")


if __name__ == "__main__":
    agent.run()
