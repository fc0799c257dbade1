"""A process that works with the store that the server has, and may be killed at any moment.

python -m tests.attack.store_worker work STORE            sessions with turns; a line for each turn that is complete
python -m tests.attack.store_worker check STORE SESSION TURNS...   loads a session that was left, and says what it holds
"""

from __future__ import annotations

import asyncio
import re
import sys

import accord
from tests.attack.honest_agent import honest_agent

UPDATES = 40
SIZE = 100


async def work(store: str) -> None:
    """Turn after turn; what was complete is said once it is."""
    async with accord.connect(honest_agent(accord.SqliteStore(store))) as remote:
        while True:
            session = await remote.new_session("/")
            for turn in range(5):
                await session.prompt(f"count t{turn} {UPDATES} {SIZE}")
                print(session.id, turn, flush=True)
            await session.close()


async def check(store: str, session_id: str, complete: int) -> None:
    """The session has to hold each complete turn whole and in order, and of the next one a beginning."""
    async with accord.connect(honest_agent(accord.SqliteStore(store))) as remote:
        session = await remote.load(session_id, "/")
    text = "".join(message.text for message in session.state.messages if message.speaker == "agent")
    found = [(int(turn), int(number)) for turn, number in re.findall(r"\[t(\d+):(\d+)\]", text)]
    expected = [(turn, number) for turn in range(complete + 1) for number in range(UPDATES)]
    if found != expected[: len(found)] or len(found) < complete * UPDATES:
        raise SystemExit(
            f"{complete} turns were complete, and {len(found)} updates are kept: {found[:5]}...{found[-5:]}"
        )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", store]:
            asyncio.run(work(store))
        case ["check", store, session_id, complete]:
            asyncio.run(check(store, session_id, int(complete)))
