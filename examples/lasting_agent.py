"""An agent that remembers: its sessions and its notes are there after a restart, and after a crash.

python examples/lasting_agent.py [FILE]

Start it from an editor. Without FILE the sessions are kept under your data folder. Close the editor in the midst of an
answer, open it again, and load the session: all that you saw is there.
"""

import asyncio
import sys

import msgspec

import accord


class Notes(msgspec.Struct):
    """What is kept for a session."""

    lines: list[str] = []


store = accord.SqliteStore(sys.argv[1]) if len(sys.argv) > 1 else accord.SqliteStore(name="lasting-agent")
agent = accord.Agent("notebook", version="1.0", title="Notebook", store=store, state=Notes)


@agent.on_prompt
async def note(turn: accord.Turn) -> None:
    notes: Notes = turn.session.state
    notes.lines.append(turn.text)
    async with turn.tool("Write it down", kind="edit") as tool:
        await tool.text(turn.text)
    for number, line in enumerate(notes.lines, 1):
        await turn.say(f"{number}. {line}\n")
        await asyncio.sleep(0)


@agent.command("forget", "Forget all notes of this session")
async def forget(turn: accord.Turn) -> None:
    turn.session.state = Notes()
    await turn.say("Forgotten.")


@agent.command("recall", "Say how this session began")
async def recall(turn: accord.Turn) -> None:
    first = (await turn.session.history()).messages[0]
    await turn.say(f"You began with: {first.text}")


if __name__ == "__main__":
    agent.run()
