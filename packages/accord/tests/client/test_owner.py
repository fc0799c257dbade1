"""`connect(owner=...)`: whose sessions they are, for agents of the program and for commands."""

import sys

import pytest

import accord

AGENT = """
import accord
agent = accord.Agent("keeper", store={store!r})
agent.on_prompt(lambda turn: turn.say("Noted."))
agent.run()
"""


@pytest.fixture(params=["in memory", "a command"])
def target(request, tmp_path):
    store = str(tmp_path / "sessions.sqlite3")
    if request.param == "a command":
        return [sys.executable, "-c", AGENT.format(store=store)]
    agent = accord.Agent("keeper", store=store)
    agent.on_prompt(lambda turn: turn.say("Noted."))
    return agent


async def listed(remote):
    return [info.session_id async for info in remote.sessions()]


async def test_owners_do_not_see_each_other_s_sessions(target, tmp_path):
    async with accord.connect(target, owner="ada") as ada, accord.connect(target, owner="bob") as bob:
        session = await ada.new_session(tmp_path)
        await session.prompt("Hello")
        assert await listed(ada) == [session.id]
        assert await listed(bob) == []
        with pytest.raises(accord.PeerError):
            await bob.load(session.id, tmp_path)
    async with accord.connect(target, owner="ada") as ada, accord.connect(target) as other:
        assert await listed(ada) == [session.id]
        assert await listed(other) == []


async def test_an_owner_for_a_url_is_refused():
    with pytest.raises(ValueError, match="behind a URL the token says whose it is"):
        async with accord.connect("http://127.0.0.1:1/acp", owner="ada"):
            pass


def test_the_face_without_async_has_it(target, tmp_path):
    with accord.sync.connect(target, owner="ada") as ada:
        ada.new_session(tmp_path).prompt("Hello").outcome()
    with accord.sync.connect(target, owner="bob") as bob:
        assert list(bob.sessions()) == []
