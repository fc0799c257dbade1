"""Which version a client and an agent agree on, whatever the agent makes of `initialize`."""

from __future__ import annotations

import asyncio
import sys

import pytest

import accord
from accord.testing import ScriptedPeer, script_command
from tests.client.conftest import Scripted
from tests.client.v2.conftest import staged_v2

SECOND = {"protocolVersion": 2, "info": {"name": "second", "version": "2.0"}, "capabilities": {"session": {}}}
FIRST = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}


async def meet(script, **options):
    """Connect with an agent that plays this script; returns its version, its name and what it got as `initialize`."""
    target = Scripted()

    async def play():
        agent = await target.agents.get()
        await agent.open()
        return await script(agent)

    playing = asyncio.create_task(play())
    async with accord.connect(target, accord.Client(files=True), **options) as remote:
        hello = await playing
        return remote.version, remote, hello


def answering(*answers):
    """A script that answers each `initialize` in turn: an object is a result, a tuple an error."""

    async def script(agent: ScriptedPeer):
        got = []
        for answer in answers:
            hello = await agent.expect("initialize")
            got.append(hello["params"])
            if isinstance(answer, tuple):
                agent.error(hello, *answer)
            else:
                agent.answer(hello, answer)
        return got

    return script


async def test_one_initialize_asks_in_the_words_of_both_versions():
    _, _, [asked] = await meet(answering(SECOND), versions=(2, 1))
    assert asked["protocolVersion"] == 2
    assert asked["info"] == asked["clientInfo"]
    assert asked["clientCapabilities"]["fs"] == {"readTextFile": True, "writeTextFile": True}
    assert "fs" not in asked["capabilities"]


async def test_a_client_of_version_2_alone_does_not_speak_of_version_1():
    _, _, [asked] = await meet(answering(SECOND), versions=(2,))
    assert asked.keys() == {"protocolVersion", "info", "capabilities"}


async def test_a_client_asks_for_version_1_alone_unless_it_is_told_to():
    version, _, [asked] = await meet(answering(FIRST))
    assert version == 1
    assert asked["protocolVersion"] == 1
    assert "info" not in asked


@pytest.mark.parametrize(
    ("answers", "version", "asked"),
    [
        ([SECOND], 2, [2]),
        ([FIRST], 1, [2]),
        ([{"protocolVersion": 2, "agentCapabilities": {}}], 1, [2]),
        ([{"protocolVersion": 2}], 1, [2]),
        ([{**SECOND, "agentCapabilities": {}}], 1, [2]),
        ([(-32022, "no", {"requested": 2, "supported": [1]}), FIRST], 1, [2, 1]),
        ([(-32022, "no"), FIRST], 1, [2, 1]),
        ([(-32602, "params?"), FIRST], 1, [2, 1]),
        ([(-32600, "what?"), FIRST], 1, [2, 1]),
        ([(-32603, "oops"), FIRST], 1, [2, 1]),
    ],
)
async def test_the_version_follows_from_the_answers_of_the_agent(answers, version, asked):
    agreed, remote, hellos = await meet(answering(*answers), versions=(2, 1))
    assert agreed == version
    assert [hello["protocolVersion"] for hello in hellos] == asked
    assert remote.capabilities.sessions.load == (version == 2 or answers[-1] is FIRST)


async def test_the_second_initialize_is_a_plain_one_of_version_1():
    _, _, hellos = await meet(answering((-32602, "params?"), FIRST), versions=(2, 1))
    assert hellos[1].keys() == {"protocolVersion", "clientCapabilities", "clientInfo"}


@pytest.mark.parametrize(
    ("answers", "versions", "problem"),
    [
        ([{**SECOND, "protocolVersion": 999}], (2, 1), "version 999"),
        ([FIRST], (2,), "only version 2 was offered"),
        ([{"protocolVersion": 2, "agentCapabilities": {}}], (2,), "in the shape of version 1"),
        ([[]], (2, 1), "must be an object"),
        ([{**SECOND, "info": {}}], (2, 1), "result is invalid"),
        ([(-32022, "only 3", {"requested": 2, "supported": [3]})], (2, 1), "only 3"),
        ([(-32000, "log in")], (2, 1), "log in"),
        ([(-32602, "the first"), (-32603, "the second")], (2, 1), "the first"),
        ([(-32602, "no retry")], (2,), "no retry"),
    ],
)
async def test_what_is_no_agreement_is_one_clear_error(answers, versions, problem):
    with pytest.raises((accord.ProtocolError, accord.PeerError), match=problem):
        await meet(answering(*answers), versions=versions)


async def test_an_agent_that_ends_after_refusing_version_2_is_reported_by_its_refusal():
    async def script(agent):
        agent.error(await agent.expect("initialize"), -32600, "version 1 only")
        await agent.close()

    with pytest.raises(accord.PeerError, match="version 1 only"):
        await meet(script, versions=(2, 1))


async def test_an_agent_that_never_answers_is_given_up_at_the_deadline():
    async def script(agent):
        await agent.expect("initialize")
        await agent.expect_end()

    with pytest.raises(accord.Timeout, match="did not answer `initialize`"):
        await meet(script, versions=(2, 1), timeout=0.05)


@pytest.mark.parametrize("versions", [(), (3,), (True,), (2, 0), ("2",)])
async def test_other_versions_are_refused_where_they_are_given(versions):
    with pytest.raises(ValueError, match="versions must be 1, 2 or both"):
        async with accord.connect(["agent"], versions=versions):
            pass


async def test_a_number_is_no_sequence_of_versions():
    with pytest.raises(TypeError, match="versions"):
        async with accord.connect(["agent"], versions=2):
            pass


async def test_the_capabilities_of_version_2_answer_the_same_questions():
    async with staged_v2() as stage:
        offers = stage.remote.capabilities
        assert (offers.prompt.image, offers.prompt.audio, offers.mcp.http) == (True, False, False)
        sessions = offers.sessions
        assert (sessions.load, sessions.resume, sessions.list, sessions.close) == (True, True, True, True)
        assert (sessions.delete, sessions.fork, sessions.title) == (True, True, False)
        assert offers.logout is False
        assert stage.remote.info is not None
        assert (stage.remote.name, stage.remote.info.version) == ("second", "2.0")
        assert type(offers.declared).__module__.startswith("accord.schema.v2")


async def test_an_agent_without_sessions_is_asked_for_none():
    async with staged_v2(sessions={}) as stage:
        stage.agent.conversation.clear()
        assert stage.remote.capabilities.sessions.load, "an empty object means the whole base"
    target = Scripted()
    connecting = accord.connect(target, versions=(2,))
    playing = asyncio.create_task(_without_sessions(target))
    async with connecting as remote:
        agent = await playing
        assert not remote.capabilities.sessions.load
        with pytest.raises(accord.CapabilityMissing, match="session"):
            await remote.new_session("/")
        await agent.expect_silence()


async def _without_sessions(target):
    agent = await target.agents.get()
    await agent.open()
    agent.answer(await agent.expect("initialize"), {**SECOND, "capabilities": {}})
    return agent


async def speaking_the_second_version(peer: ScriptedPeer) -> None:
    """An agent in a process of its own."""
    peer.answer(await peer.expect("initialize"), SECOND)
    peer.answer(await peer.expect("session/new"), {"sessionId": "s"})
    await peer.expect_end()


async def repeating_any_version(peer: ScriptedPeer) -> None:
    hello = await peer.expect("initialize")
    peer.answer(hello, {"protocolVersion": hello["params"]["protocolVersion"], "agentCapabilities": {}})
    peer.answer(await peer.expect("session/new"), {"sessionId": "s"})
    await peer.expect_end()


async def knowing_the_first_version_only(peer: ScriptedPeer) -> None:
    refused = await peer.expect("initialize")
    peer.error(refused, -32022, "Unsupported protocol version", {"requested": 2, "supported": [1]})
    peer.answer(await peer.expect("initialize"), FIRST)
    peer.answer(await peer.expect("session/new"), {"sessionId": "s"})
    await peer.expect_end()


@pytest.mark.skipif(sys.platform == "win32", reason="scripts are started by a POSIX command")
@pytest.mark.parametrize(
    ("script", "version"),
    [(speaking_the_second_version, 2), (repeating_any_version, 1), (knowing_the_first_version_only, 1)],
)
async def test_processes_of_either_version_open_a_session(script, version):
    async with accord.connect(script_command(script), versions=(2, 1)) as remote:
        assert remote.version == version
        assert (await remote.new_session("/")).id == "s"
