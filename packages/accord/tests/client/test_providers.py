"""Providers on a client's side: set before any session is opened, and again after a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import accord
from accord import Endpoint
from accord.testing import ScriptedPeer
from tests.client.conftest import Scripted, shake_hands

DECLARED = {"providers": {}, "sessionCapabilities": {"resume": {}}}
GATEWAY = Endpoint("openai", "https://gateway.example/v1", {"Authorization": "Bearer s3cret"})
SET = {
    "providerId": "main",
    "apiType": "openai",
    "baseUrl": "https://gateway.example/v1",
    "headers": {"Authorization": "Bearer s3cret"},
}
MAIN = {"providerId": "main", "supported": ["openai", "_example.com"], "required": False}


async def lists(agent: ScriptedPeer, *providers: Any) -> None:
    agent.answer(await agent.expect("providers/list"), {"providers": list(providers or (MAIN,))})


async def started(target: Scripted, capabilities: Any = DECLARED) -> ScriptedPeer:
    agent = await target.agents.get()
    await shake_hands(agent, capabilities)
    return agent


async def connecting(target: Scripted, providers: Any = None, **options: Any) -> accord.RemoteAgent:
    block = accord.connect(target, providers={"main": GATEWAY} if providers is None else providers, **options)
    return await block.__aenter__()


async def test_a_new_connection_lists_and_sets_its_providers_before_anything_else() -> None:
    target = Scripted()

    async def use() -> str:
        async with accord.connect(target, providers={"main": GATEWAY}) as remote:
            return (await remote.new_session("/")).id

    using = asyncio.create_task(use())
    agent = await started(target)
    await lists(agent)
    call = await agent.expect("providers/set")
    assert call["params"] == SET
    await agent.expect_silence()  # no session before the provider is in force
    agent.answer(call, {})
    agent.answer(await agent.expect("session/new"), {"sessionId": "s"})
    assert await using == "s"
    await agent.close()


async def test_a_restarted_agent_gets_its_providers_before_its_sessions() -> None:
    target = Scripted()

    async def use() -> str:
        restart = accord.Restart(first_pause=0.0)
        async with accord.connect(target, providers={"main": GATEWAY}, restart=restart) as remote:
            session = await remote.new_session("/")
            await remote.set_provider("other", Endpoint("_example.com", "http://127.0.0.1:1/"))
            await remote.disable_provider("third")
            await remote.peer.connection.closed()
            return (await session.prompt("go")).stop_reason

    using = asyncio.create_task(use())
    first = await started(target)
    await lists(first)
    first.answer(await first.expect("providers/set"), {})
    first.answer(await first.expect("session/new"), {"sessionId": "s"})
    first.answer(await first.expect("providers/set"), {})
    first.answer(await first.expect("providers/disable"), {})
    await first.close()

    second = await started(target)
    await lists(second, MAIN, MAIN | {"providerId": "other"}, MAIN | {"providerId": "third"})
    call = await second.expect("providers/set")
    assert call["params"] == SET
    second.answer(call, {})
    call = await second.expect("providers/set")
    assert call["params"] == {"providerId": "other", "apiType": "_example.com", "baseUrl": "http://127.0.0.1:1/"}
    second.answer(call, {})
    call = await second.expect("providers/disable")
    assert call["params"] == {"providerId": "third"}
    second.answer(call, {})
    second.answer(await second.expect("session/resume"), {})
    second.answer(await second.expect("session/prompt"), {"stopReason": "end_turn"})
    assert await using == "end_turn"
    await second.close()


async def test_a_restart_counts_only_when_the_providers_are_set_again() -> None:
    target, events = Scripted(), []

    async def use() -> None:
        restart = accord.Restart(attempts=2, first_pause=0.0, on_event=events.append)
        async with accord.connect(target, providers={"main": GATEWAY}, restart=restart) as remote:
            session = await remote.new_session("/")
            await remote.peer.connection.closed()
            with pytest.raises(accord.ConnectionClosed):
                await session.prompt("go")

    using = asyncio.create_task(use())
    first = await started(target)
    await lists(first)
    first.answer(await first.expect("providers/set"), {})
    first.answer(await first.expect("session/new"), {"sessionId": "s"})
    await first.close()
    for _ in range(2):
        later = await started(target)
        await lists(later)
        later.error(await later.expect("providers/set"), -32603, "the gateway does not answer")
        await later.expect_end()
        await later.close()
    await using
    [event] = events
    assert not event.agent_is_back
    assert [session.id for session in event.lost] == ["s"]


@pytest.mark.parametrize(
    ("offered", "problem"),
    [
        ([MAIN | {"providerId": "other"}], "the agent has no provider 'main'; it has other"),
        ([MAIN | {"supported": ["vertex"]}], "provider 'main' has no API of type 'openai'; it has vertex"),
    ],
    ids=["unknown", "another API"],
)
async def test_a_provider_that_the_agent_does_not_list_is_not_set(offered: list[Any], problem: str) -> None:
    target = Scripted()
    opening = asyncio.create_task(connecting(target))
    agent = await started(target)
    await lists(agent, *offered)
    with pytest.raises(accord.AccordError, match=rf"connect\(providers=\.\.\.\): {problem}"):
        await opening
    await agent.expect_end()
    await agent.close()


@pytest.mark.requirement("providers.only-when-advertised", "providers.after-initialize")
async def test_an_agent_without_providers_is_an_error_and_is_asked_nothing() -> None:
    target = Scripted()
    opening = asyncio.create_task(connecting(target))
    agent = await started(target, {})
    with pytest.raises(accord.CapabilityMissing, match="providers"):
        await opening
    await agent.expect_end()
    await agent.close()


async def test_a_refusal_of_the_agent_ends_the_connection() -> None:
    target = Scripted()
    opening = asyncio.create_task(connecting(target))
    agent = await started(target)
    await lists(agent)
    agent.error(await agent.expect("providers/set"), -32603, "the gateway does not answer")
    with pytest.raises(accord.PeerError, match="the gateway does not answer"):
        await opening
    await agent.expect_end()
    await agent.close()


async def test_an_agent_that_does_not_answer_is_given_up_after_the_timeout() -> None:
    target = Scripted()
    opening = asyncio.create_task(connecting(target, timeout=2.0))
    agent = await started(target)
    await agent.expect("providers/list")
    with pytest.raises(accord.Timeout, match="providers/list"):
        await opening
    await agent.expect_end()
    await agent.close()


async def test_without_providers_an_agent_is_asked_nothing_about_them() -> None:
    target = Scripted()
    opening = asyncio.create_task(connecting(target, {}))
    agent = await started(target)
    remote = await opening
    await agent.expect_silence()
    await remote.close()
    await agent.close()


@pytest.mark.parametrize("wrong", [["main"], {"main": "https://a.example"}, {5: GATEWAY}])
async def test_what_is_no_endpoint_is_refused_by_its_argument(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"connect\(providers=\.\.\.\) takes Endpoints by the ids of providers"):
        await connecting(Scripted(), wrong)


async def test_an_older_list_names_providers_by_id() -> None:
    target = Scripted()
    opening = asyncio.create_task(connecting(target))
    agent = await started(target)
    await lists(agent, {"id": "main", "supported": ["openai"], "required": True})
    call = await agent.expect("providers/set")
    assert call["params"]["providerId"] == "main"
    agent.answer(call, {})
    remote = await opening
    await remote.close()
    await agent.close()
