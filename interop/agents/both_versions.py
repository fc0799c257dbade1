"""An agent of ours for clients of other SDKs that speak version 2: each command shows one part of its lifecycle."""

from __future__ import annotations

import asyncio
import sys

import accord

agent = accord.Agent("both-versions")


@agent.on_session
async def offer(session: accord.Session) -> None:
    await session.modes.offer(["ask", "code"])


@agent.on_prompt
async def greet(turn: accord.Turn) -> None:
    await turn.say("Hello ")
    await turn.say("there.")


@agent.command("ask", "Ask for permission")
async def ask(turn: accord.Turn) -> None:
    async with turn.tool("Push", kind="execute") as tool:
        await turn.say("yes" if await tool.ask("allow_once", "reject_once") else "no")


@agent.command("fail", "Fail")
async def fail(_: accord.Turn) -> None:
    raise accord.RequestError.internal("the model is silent")


@agent.command("wait", "Wait to be cancelled")
async def wait(turn: accord.Turn) -> None:
    await turn.say("waiting")
    await asyncio.Event().wait()


@agent.command("run", "Run a command")
async def run(turn: accord.Turn) -> None:
    program = [sys.executable, "-c", "print('ran')"]
    async with turn.tool("Run", kind="execute") as tool, tool.command(program) as command:
        await command.wait()


@agent.command("watch", "Work in the background")
async def watch(turn: accord.Turn) -> None:
    begun = asyncio.Event()

    async def in_background() -> None:
        async with turn.tool("Watch", background=True, cancellable=True):
            begun.set()
            await asyncio.Event().wait()
        async with turn.session.work() as report:
            await report.say("stopped")

    turn.session.start(in_background())
    await begun.wait()


if __name__ == "__main__":
    agent.run()
