"""Who runs one process pays for no others: nothing of many hosts is imported, and nothing for their database."""

import json
import subprocess
import sys

import pytest

FOR_MANY = ("accord.hosts", "asyncpg")

AGENT = """
agent = accord.Agent("alone", store=sys.argv[1])

@agent.on_prompt
async def answer(turn):
    await turn.say("hello")

async def one_turn(remote):
    session = await remote.new_session("/project")
    assert (await session.prompt("hello")).text == "hello"
"""

LOCAL = """
async def main():
    async with accord.connect(agent) as remote:
        await one_turn(remote)
"""

SERVED = """
async def main():
    async with accord.http.serving(agent) as server, accord.connect(server.url) as remote:
        await one_turn(remote)
"""

SHARED = """
async def main():
    host = accord.http.SharedHost(agent)
    quotas = accord.http.Quotas(connections=5, turns=5, posts=50)
    async with accord.http.serving(host, quotas=quotas) as server, accord.connect(server.url) as remote:
        await one_turn(remote)
"""

HOSTED = """
async def main():
    hosts = accord.Hosts(sys.argv[1] + ".hosts")
    async with accord.http.serving(agent, hosts=hosts) as server, accord.connect(server.url) as remote:
        await one_turn(remote)
"""


def modules_of(what, folder):
    """The modules for many hosts that a program has imported when it has done a turn."""
    script = f"import asyncio, json, sys, accord\n{AGENT}{what}\nasyncio.run(main())\nprint(json.dumps([*sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder / "sessions.sqlite3")], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    return [name for name in found if name in FOR_MANY or name.startswith(tuple(f"{it}." for it in FOR_MANY))]


@pytest.mark.parametrize("what", [LOCAL, SERVED, SHARED], ids=["agent", "server", "shared agent"])
def test_one_process_imports_nothing_for_many(what, tmp_path):
    assert modules_of(what, tmp_path) == []


def test_a_host_imports_what_it_needs_but_no_database_that_it_does_not_use(tmp_path):
    found = modules_of(HOSTED, tmp_path)
    assert "accord.hosts.this_host" in found
    assert "asyncpg" not in found
