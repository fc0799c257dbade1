"""The agent that honest clients work with. Every prompt says how it is answered, so that answers can be checked.

python -m tests.attack.honest_agent STORE       over standard streams
python -m tests.attack.honest_agent proxy       a proxy that reads all and changes nothing, for a chain
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

import accord
from accord import v1


def chunk(mark: str, number: int, size: int) -> str:
    """The update of this number in a turn with this mark."""
    return f"[{mark}:{number}]".ljust(size, ".")


STALLED = 5.0
"""Seconds after which a client that asks and reads no answers is left, over standard streams. Meanwhile nothing is
read, so the end of the input is not noticed either."""


def honest_agent(store: accord.Store | None = None, limits: accord.Limits | None = None) -> accord.Agent:
    agent = accord.Agent("honest", store=store, limits=limits)

    @agent.on_prompt
    async def answer(turn: accord.Turn) -> None:
        match turn.text.split():
            case ["count", mark, number, size]:
                for reached in range(int(number)):
                    await turn.say(chunk(mark, reached, int(size)))
            case ["permit", mark]:
                async with turn.tool("Change a file", kind="edit") as tool:
                    decision = await tool.ask()
                await turn.say(f"{mark} {'allowed' if decision.allowed else 'refused'}")
            case ["file", mark, path]:
                await turn.client.write_text_file(path, f"{mark}\n" * 1000)
                await turn.say((await turn.client.read_text_file(path))[:100].split()[0])
            case ["form", mark]:
                await turn.say(f"{mark} {await name_of(turn)}")
            case ["wait", mark]:
                await turn.say(mark)
                await asyncio.Event().wait()
            case ["deaf", seconds]:  # reads nothing, as its thread is busy
                time.sleep(min(float(seconds), 20.0))  # noqa: ASYNC251
            case ["die"]:
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                await turn.say(turn.text)

    return agent


def honest_proxy() -> accord.Proxy:
    """A proxy that has each prompt and each update in its hands, and passes it on as it is."""
    proxy = accord.Proxy("honest proxy")
    proxy.prompts(lambda blocks: blocks)
    proxy.updates(lambda update: update)
    return proxy


async def name_of(turn: accord.Turn) -> str:
    """What the user fills in, in a form whose pattern has to be checked."""
    field = v1.StringPropertySchema(pattern="^[a-z]{3,20}( [a-z]+)?$", title="Name")
    filled = await turn.elicit("Who are you?", v1.ElicitationSchema({"name": field}, ["name"]))
    return filled.value["name"] if filled.accepted else filled.action


if __name__ == "__main__" and sys.argv[1:] == ["proxy"]:
    honest_proxy().run()
elif __name__ == "__main__":
    honest_agent(accord.SqliteStore(sys.argv[1]) if len(sys.argv) > 1 else None, accord.Limits(stalled=STALLED)).run()
