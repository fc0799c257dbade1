"""`session/options`, and the config options with which a client opens a session."""

from __future__ import annotations

import pytest

from accord import Agent, CapabilityMissing, MemoryStore, PeerError, connect, v1
from accord.sync import connect as connect_in_thread
from tests.waiting import DEADLINE

VERSIONS = pytest.mark.parametrize("version", [1, 2])


def choosy(**options):
    """An agent with a mode and a switch, which notes what is chosen."""
    agent = Agent("choosy", unstable=True, store=MemoryStore(), **options)
    agent.command("review", "Review")(lambda _: None)
    chosen = []

    @agent.on_session
    async def offer(session):
        await session.modes.offer(["ask", "code"])
        await session.config.offer("aloud", "Aloud")
        await session.notice("A session is prepared")

    @agent.on_config
    def note(_, option_id, value):
        chosen.append((option_id, value))

    @agent.on_prompt
    async def answer(turn):
        await turn.say(str(turn.session.config.values()))

    return agent, chosen


def values(options):
    return {it.config_id: it.current_value for it in options}


@VERSIONS
async def test_the_options_of_a_session_are_known_before_it_is_opened(version):
    agent, _ = choosy()
    async with connect(agent, versions=(version,), unstable=True) as remote:
        answer = await remote.options("/")
        assert values(answer.config_options) == {"mode": "ask", "aloud": False}
        assert [it async for it in remote.sessions()] == []
        assert not remote.open_sessions


@VERSIONS
async def test_the_options_of_a_kept_session_are_those_that_were_chosen(version):
    agent, _ = choosy()
    async with connect(agent, versions=(version,), unstable=True) as remote:
        session = await remote.new_session("/")
        await session.set_config("mode", "code")
        assert values((await remote.options("/", session_id=session.id)).config_options)["mode"] == "code"
        await session.close()
        assert values((await remote.options("/", session_id=session.id)).config_options)["mode"] == "code"
        with pytest.raises(PeerError, match="cwd must be the folder of the session"):
            await remote.options("/other", session_id=session.id)
        with pytest.raises(PeerError) as unknown:
            await remote.options("/", session_id="nobody")
        assert unknown.value.code == -32002


async def test_asking_for_options_sends_no_update_and_changes_no_session(serve):
    agent, _ = choosy()
    shows = v1.ClientCapabilities(session=v1.ClientSessionCapabilities(notices=v1.NoticeCapabilities()))
    async with serve(agent, declare=shows, unstable=True) as editor:
        session = await editor.open()
        await editor.prompt(session, "hello")
        before = list(editor.updates)
        await editor.request(v1.SessionOptionsRequest("/project"), timeout=DEADLINE)
        await editor.request(v1.SessionOptionsRequest("/project", [], session), timeout=DEADLINE)
        await editor.prompt(session, "hello")
        notices = [it for it in editor.updates[len(before) :] if isinstance(it, v1.Notice)]
        assert notices == []


@VERSIONS
async def test_a_session_begins_with_the_config_that_the_client_gives(version):
    agent, chosen = choosy()
    async with connect(agent, versions=(version,), unstable=True) as remote:
        config = {"mode": "code", "aloud": True, "unknown": "x"}
        session = await remote.new_session("/", config=config)
        assert values(session.state.config) == {"mode": "code", "aloud": True}
        assert chosen == [("mode", "code"), ("aloud", True)]
        assert (await session.prompt("?")).text == "{'mode': 'code', 'aloud': True}"
        fork = await session.fork(config={"aloud": False})
        assert values(fork.state.config) == {"mode": "code", "aloud": False}
        await session.close()
        for reopen in (remote.load, remote.resume):
            again = await reopen(session.id, "/", config={"mode": "ask"})
            assert values(again.state.config) == {"mode": "ask", "aloud": True}
            await again.close()


@VERSIONS
async def test_values_that_are_not_offered_are_ignored(version):
    agent, chosen = choosy()
    async with connect(agent, versions=(version,), unstable=True) as remote:
        session = await remote.new_session("/", config={"mode": "fly", "aloud": "yes"})
        assert values(session.state.config) == {"mode": "ask", "aloud": False}
        assert chosen == []


async def test_initial_config_stays_after_a_restart():
    agent, _ = choosy()
    async with connect(agent, unstable=True) as remote:
        session = await remote.new_session("/", config={"mode": "code"})
    async with connect(agent, unstable=True) as remote:
        assert values((await remote.resume(session.id, "/")).state.config)["mode"] == "code"


async def test_an_option_that_is_given_twice_is_refused_and_opens_nothing(serve):
    agent, _ = choosy()
    async with serve(agent, unstable=True) as editor:
        twice = [v1.InitialSessionConfigValue("mode", value) for value in ("ask", "code")]
        with pytest.raises(PeerError) as refused:
            await editor.open(config_options=twice)
        assert (refused.value.code, refused.value.data["path"]) == (-32602, "$.configOptions[1].configId")
        assert (await editor.request(v1.ListSessionsRequest(), timeout=DEADLINE)).sessions == []


async def test_an_agent_without_proposals_takes_no_initial_config():
    agent = Agent("plain")
    agent.on_prompt(lambda _: None)
    async with connect(agent, unstable=True) as remote:
        with pytest.raises(CapabilityMissing):
            await remote.options("/")
        with pytest.raises(CapabilityMissing):
            await remote.new_session("/", config={"mode": "code"})
        assert (await remote.new_session("/", config={})).is_open


async def test_config_of_another_type_is_refused_before_anything_is_sent():
    agent, _ = choosy()
    async with connect(agent, unstable=True) as remote:
        with pytest.raises(TypeError, match="config"):
            await remote.new_session("/", config=["mode"])
        with pytest.raises(TypeError, match="config"):
            await remote.new_session("/", config={"mode": 3})


def test_a_program_without_async_asks_for_options():
    agent, _ = choosy()
    with connect_in_thread(agent, unstable=True) as remote:
        assert values(remote.options("/").config_options)["mode"] == "ask"
        assert values(remote.new_session("/", config={"mode": "code"}).state.config)["mode"] == "code"
