"""Sessions that live at random: whatever prompts, cancels and background work meet, each reply ends, and the store
has what the client saw.

Each life has a seed; `--seed N` repeats one. Nothing in it waits for a clock: a life is short steps of the event loop.
"""

from __future__ import annotations

import asyncio
import random

import pytest

import accord
from tests.waiting import DEADLINE

LIVES = range(100)
FOUND = (398, 627, 973, 1082)
"""Lives that have found a fault: own work that was cancelled before it began, and what the agent said by itself while a
prompt was on its way that was refused then."""
WORDS = ("say", "say", "tool", "wait", "fail", "refuse", "background", "work", "take", "ask")


async def steps(chance, most=20):
    for _ in range(chance.randint(0, most)):
        await asyncio.sleep(0)


def an_agent(chance, store):
    agent = accord.Agent(
        "random", store=store, versions=(1, 2), prompt_while_working=chance.choice(["queue", "cancel_first", "steer"])
    )

    async def in_background(turn):
        async with turn.tool("Watch", background=True, cancellable=True):
            await steps(chance, 200)
        async with turn.session.work() as report:
            await report.say("seen")

    async def by_itself(session):
        async with session.work() as turn:
            await turn.say("by myself ")
            await steps(chance)

    @agent.on_prompt
    async def work(turn):
        word = turn.text.split()[0]
        await steps(chance)
        await turn.say(f"{turn.text}: ")
        match word:
            case "tool":
                async with turn.tool("Look", cancellable=chance.random() < 0.5) as tool:
                    await steps(chance, 100)
                    await tool.text("found")
            case "wait":
                await asyncio.get_running_loop().create_future()
            case "fail":
                raise accord.RequestError(-32001, "on purpose")
            case "refuse":
                return "refusal"
            case "background":
                turn.session.start(in_background(turn))
            case "work":
                turn.session.start(by_itself(turn.session))
            case "take":
                async for more in turn.prompts():
                    await turn.say(f"({more.text}) ")
            case "ask":
                await turn.ask("Go on?")
        await steps(chance)
        await turn.say("done")
        return "end_turn"

    return agent


class Life:
    """One session, and what a client does to it."""

    def __init__(self, seed, version):
        self.chance = random.Random(seed)
        self.version = version
        self.store = accord.MemoryStore()
        self.replies = []

    async def run(self):
        client = accord.Client(permissions=self.decide)
        agent = an_agent(self.chance, self.store)
        async with accord.connect(agent, client, versions=(self.version,)) as remote:
            session = await remote.new_session("/")
            for number in range(self.chance.randint(3, 12)):
                await self.act(session, number)
                await steps(self.chance, self.chance.choice([0, 5, 100]))
            await self.end(session)
            seen = shown(session)
            await session.close()
            again = await remote.load(session.id, "/")
            if self.version == 2:
                assert shown(again) == seen
            assert (await again.prompt("say again")).stop_reason == "end_turn"

    async def decide(self, _):
        await steps(self.chance, 50)
        return self.chance.random() < 0.5

    async def act(self, session, number):
        match self.chance.choice(["prompt"] * 5 + ["cancel", "cancel all", "cancel tool"]):
            case "prompt":
                self.replies.append(session.prompt(f"{self.chance.choice(WORDS)} {number}"))
            case "cancel" if self.replies:
                await tolerantly(self.chance.choice(self.replies).cancel())
            case "cancel all":
                await tolerantly(session.cancel())
            case "cancel tool" if self.version == 2:
                for call in list(session.state.tool_calls.values()):
                    if call.can_cancel:
                        await tolerantly(session.cancel_tool_call(call.id))

    async def end(self, session):
        """Every reply ends: those that wait for nothing by a cancel."""
        for reply in self.replies:
            done = asyncio.ensure_future(tolerantly(reply))
            await steps(self.chance, 500)
            if not done.done():
                await tolerantly(reply.cancel())
            await done
        await session.prompt("say last")
        if self.version == 2:
            await session.idle()
            while session.state.background:
                for work in session.state.background:
                    await tolerantly(session.cancel_tool_call(work.tool_call_id))
                await steps(self.chance)
            await session.prompt("say at last")
            await session.idle()


async def tolerantly(awaitable):
    """Its result; None for an error of the agent."""
    try:
        return await awaitable
    except accord.PeerError:
        return None


def shown(session):
    """What was said, by speaker: the client shows a prompt as soon as it is sent, so what the agent says by itself in
    the meantime comes after it there, and before it in the store."""
    messages = [message for message in session.state.messages if not message.refused]
    return {
        speaker: [(message.id, message.text) for message in messages if message.speaker == speaker]
        for speaker in ("user", "agent")
    }


@pytest.mark.parametrize("version", [1, 2])
async def test_each_reply_ends_and_the_store_has_what_the_client_saw(version, pytestconfig, caplog):
    seed = pytestconfig.option.seed
    for each in [*LIVES, *FOUND] if seed is None else [seed]:
        print(f"seed {each}")
        async with asyncio.timeout(DEADLINE):
            await Life(each, version).run()
        assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
