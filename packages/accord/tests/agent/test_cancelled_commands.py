"""A cancel that comes while a command is being shown: it runs already, and ends with the turn."""

import asyncio
import os
import sys

import pytest

import accord
from tests.waiting import DEADLINE, eventually

LIVES = """
import os, pathlib, threading
pathlib.Path("written").write_text(str(os.getpid()))
os.rename("written", "pid")
threading.Event().wait()
"""


class StuckStore(accord.MemoryStore):
    """Needs for ever to keep what shows a command."""

    def __init__(self, shows):
        super().__init__()
        self.shows = shows
        self.is_stuck = asyncio.Event()

    def appending(self, _):
        return None

    async def write(self, session, updates=(), *changes):
        if any(self.shows in it for it in updates):
            self.is_stuck.set()
            await asyncio.Event().wait()
        await super().write(session, updates, *changes)


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("version", "terminals", "shows"),
    [(1, True, b'"type":"terminal"'), (1, False, b'"in_progress"'), (2, False, b'"terminal_update"')],
)
async def test_a_command_ends_that_was_cancelled_while_it_was_being_shown(tmp_path, version, terminals, shows):
    store = StuckStore(shows)
    agent = accord.Agent("runner", store=store, versions=(1, 2))

    @agent.on_prompt
    async def run(turn):
        async with (
            turn.tool("Run it", kind="execute") as tool,
            tool.command([sys.executable, "-c", LIVES]) as command,
        ):
            await command.wait()

    client = accord.Client(terminals=terminals, permissions=True)
    async with accord.connect(agent, client=client, versions=(version,)) as remote, asyncio.timeout(DEADLINE):
        session = await remote.new_session(tmp_path)
        reply = session.prompt("go")
        await store.is_stuck.wait()
        await eventually((tmp_path / "pid").exists)
        process = int((tmp_path / "pid").read_text())
        assert is_running(process)
        await session.cancel()
        assert (await reply).stop_reason == "cancelled"
        await eventually(lambda: not is_running(process))
