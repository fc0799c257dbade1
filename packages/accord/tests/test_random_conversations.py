"""The same random conversation in both versions ends in equal states, for the client of it and for one that loads it.

A conversation has a seed; `--seed N` repeats one.
"""

from __future__ import annotations

import json
import random
import re

import accord
from accord.schema import codec

CONVERSATIONS = range(20)
WORDS = ("one ", "two\n", "né ", "\U0001f44d", "")


class Talk:
    """What an agent does in a conversation: the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def words(self) -> str:
        return "".join(self.dice.choices(WORDS, k=3)) + "."

    async def turn(self, turn: accord.Turn) -> None:
        for _ in range(self.dice.randint(1, 8)):
            act = self.dice.choice(
                (self.say, self.think, self.tool, self.plan, self.report, self.settle, self.delegate)
            )
            await act(turn)

    async def say(self, turn):
        for _ in range(self.dice.randint(1, 4)):
            await turn.say(self.words())
        if self.dice.random() < 0.3:
            turn.end_message()

    async def think(self, turn):
        await turn.think(self.words())

    async def tool(self, turn):
        kind = self.dice.choice(("read", "edit", "execute", "search", "other"))
        async with turn.tool(self.words(), kind=kind, locations=["/a.txt"], raw_input={"n": 1}) as tool:
            match self.dice.choice(("text", "diff", "fail", "ask", "output", "stream")):
                case "text":
                    await tool.text(self.words())
                case "diff":
                    await tool.diff("/a.txt", self.dice.choice((None, "old\n")), self.words())
                case "fail":
                    await tool.fail(self.words())
                case "ask":
                    await tool.ask()
                case "output":
                    await tool.raw_output({"found": [self.words()]})
                case "stream":
                    for _ in range(3):
                        await tool.text(self.words())

    async def plan(self, turn):
        plan = await turn.plan("Read", "Write", "Test")
        async with plan.step("Read"):
            await self.say(turn)

    async def report(self, turn):
        await turn.usage(self.dice.randint(1, 99), 100)

    async def settle(self, turn):
        await turn.session.set_title(self.words())

    async def delegate(self, turn):
        async with turn.subagent(self.words()) as child:
            await child.say(self.words())


def an_agent(seed, store):
    talk = Talk(seed)
    agent = accord.Agent("random", store=store, versions=(1, 2))
    agent.on_prompt(talk.turn)
    return agent


async def allow(question: accord.PermissionQuestion) -> bool:
    return True


def plain(session):
    """What the session's state shows, as JSON, without the random beginning of its ids.

    Version 1 gives the live messages of a user no id, and usage without a cost has none there, instead of `null`.
    """
    state = session.state
    timeline = [
        codec.plain(it) | ({"id": None} if getattr(it, "speaker", "") == "user" else {}) for it in state.timeline
    ]
    usage = state.usage and (state.usage.used, state.usage.size)
    made = [timeline, codec.plain(state.plan), usage, state.title, [it.title for it in state.subagents.values()]]
    return json.loads(re.sub(rb'"[0-9a-f]{8}-', b'"', codec.encode(made)))


def without_diffs(seen):
    """Version 1 shows a diff as two texts, version 2 as a patch."""
    timeline, *others = seen
    for it in timeline:
        if "kind" in it:
            it["content"] = ["diff" if part["type"] == "diff" else part for part in it["content"]]
    return [timeline, *others]


async def test_a_random_conversation_is_the_same_in_both_versions_live_and_loaded(pytestconfig):
    seed = pytestconfig.option.seed
    for each in CONVERSATIONS if seed is None else [seed]:
        print(f"seed {each}")
        live, loaded = {}, {}
        for version in (1, 2):
            store, client = accord.MemoryStore(), accord.Client(permissions=allow)
            async with accord.connect(an_agent(each, store), client, versions=(version,)) as remote:
                session = await remote.new_session("/")
                for number in range(3):
                    await session.prompt(f"Go {number}")
                live[version] = plain(session)
                await session.close()
            for later in (1, 2):
                async with accord.connect(an_agent(each, store), client, versions=(later,)) as remote:
                    loaded[version, later] = plain(await remote.load(session.id, "/"))
        assert loaded[1, 1] == loaded[2, 1] == live[1]
        assert loaded[1, 2] == loaded[2, 2] == live[2]
        assert without_diffs(live[1]) == without_diffs(live[2])
