"""`_meta`: what a client sends with each request, and what it can read of each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

import accord
from accord import v1
from tests.client.conftest import Stage, shake_hands, staged

SENT = {"_example.com/ours": {"a": [1, None]}}
ANSWERED = {"_example.com/theirs": "b"}

EVERYTHING = {
    "loadSession": True,
    "sessionCapabilities": {
        name: {} for name in ("list", "resume", "fork", "close", "delete", "archive", "status", "title", "systemPrompt")
    },
}
MODES = {"currentModeId": "one", "availableModes": [{"id": "one", "name": "One"}, {"id": "two", "name": "Two"}]}
MODELS = {
    "currentModelId": "one",
    "availableModels": [{"modelId": "one", "name": "1"}, {"modelId": "two", "name": "2"}],
}
OPTION = {
    "id": "size",
    "name": "Size",
    "type": "select",
    "currentValue": "s",
    "options": [{"value": "s", "name": "S"}, {"value": "l", "name": "L"}],
}

Doing: TypeAlias = Callable[[accord.RemoteAgent, accord.RemoteSession], Awaitable[Any]]

CHANGES: dict[str, tuple[str, Doing, dict[str, Any]]] = {
    "set_mode": ("session/set_mode", lambda _, session: session.set_mode("two", meta=SENT), {}),
    "set_model": ("session/set_model", lambda _, session: session.set_model("two", meta=SENT), {}),
    "set_config": (
        "session/set_config_option",
        lambda _, session: session.set_config("size", "l", meta=SENT),
        {"configOptions": [OPTION | {"currentValue": "l"}]},
    ),
    "set_title": ("session/set_title", lambda _, session: session.set_title("T", meta=SENT), {"title": "T"}),
    "close": ("session/close", lambda _, session: session.close(meta=SENT), {}),
    "delete": ("session/delete", lambda remote, session: remote.delete(session.id, meta=SENT), {}),
}
"""What is done, the method of its request, and the result beside `_meta`."""

OPENINGS: dict[str, tuple[str, Doing, dict[str, Any]]] = {
    "new": ("session/new", lambda remote, _: remote.new_session("/", meta=SENT), {"sessionId": "other"}),
    "load": ("session/load", lambda remote, _: remote.load("other", "/", meta=SENT), {}),
    "resume": ("session/resume", lambda remote, _: remote.resume("other", "/", meta=SENT), {}),
    "fork": ("session/fork", lambda _, session: session.fork(meta=SENT), {"sessionId": "other"}),
}


async def opened(stage: Stage) -> accord.RemoteSession:
    """A session with modes, models and an option."""
    opening = asyncio.create_task(stage.remote.new_session("/"))
    choices = {"modes": MODES, "models": MODELS, "configOptions": [OPTION]}
    stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s", **choices})
    return await opening


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_carries_meta_and_returns_that_of_its_answer(name: str) -> None:
    method, do, result = CHANGES[name]
    async with staged(capabilities=EVERYTHING) as stage:
        doing = asyncio.ensure_future(do(stage.remote, await opened(stage)))
        call = await stage.agent.expect(method)
        assert call["params"]["_meta"] == SENT
        stage.agent.answer(call, result | {"_meta": ANSWERED})
        assert await doing == ANSWERED


@pytest.mark.parametrize("name", CHANGES)
async def test_an_answer_without_meta_returns_an_empty_one(name: str) -> None:
    method, do, result = CHANGES[name]
    async with staged(capabilities=EVERYTHING) as stage:
        doing = asyncio.ensure_future(do(stage.remote, await opened(stage)))
        stage.agent.answer(await stage.agent.expect(method), result)
        assert await doing == {}


@pytest.mark.parametrize("name", OPENINGS)
async def test_a_session_keeps_the_meta_of_the_answer_that_opened_it(name: str) -> None:
    method, do, result = OPENINGS[name]
    async with staged(capabilities=EVERYTHING) as stage:
        opening = asyncio.ensure_future(do(stage.remote, await opened(stage)))
        call = await stage.agent.expect(method)
        assert call["params"]["_meta"] == SENT
        stage.agent.answer(call, result | {"_meta": ANSWERED})
        assert (await opening).meta == ANSWERED


async def test_a_prompt_carries_meta_and_its_outcome_has_that_of_the_answer() -> None:
    async with staged() as stage:
        session = await stage.session()
        assert session.meta == {}
        reply = session.prompt("go", meta=SENT)
        call = await stage.agent.expect("session/prompt")
        assert call["params"]["_meta"] == SENT
        stage.agent.answer(call, {"stopReason": "end_turn", "_meta": ANSWERED})
        assert (await reply).meta == ANSWERED


@pytest.mark.parametrize("by", ["the session", "the reply"])
async def test_a_cancellation_carries_meta(by: str) -> None:
    async with staged() as stage:
        session = await stage.session()
        reply = session.prompt("go")
        prompt = await stage.agent.expect("session/prompt")
        cancel = session.cancel if by == "the session" else reply.cancel
        cancelling = asyncio.create_task(cancel(meta=SENT))
        assert (await stage.agent.expect("session/cancel"))["params"] == {"sessionId": "s", "_meta": SENT}
        stage.end(prompt, "cancelled")
        await cancelling


async def test_each_page_of_a_list_is_asked_for_with_the_filter_and_meta() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        listing = asyncio.create_task(collected(stage.remote))
        call = await stage.agent.expect("session/list")
        assert call["params"] == {"archived": "only", "_meta": SENT}
        entry = {"sessionId": "a", "cwd": "/", "archived": True, "_meta": ANSWERED}
        stage.agent.answer(call, {"sessions": [entry], "nextCursor": "next"})
        call = await stage.agent.expect("session/list")
        assert call["params"] == {"cursor": "next", "archived": "only", "_meta": SENT}
        stage.agent.answer(call, {"sessions": []})
        [info] = await listing
        assert (info.archived, info.meta) == (True, ANSWERED)


async def collected(remote: accord.RemoteAgent) -> list[v1.SessionInfo]:
    return [info async for info in remote.sessions(archived="only", meta=SENT)]


async def test_a_restarted_agent_gets_the_meta_and_the_system_prompt_of_the_session_again() -> None:
    restart = accord.Restart(first_pause=0.0)
    async with staged(capabilities=EVERYTHING, restart=restart) as stage:
        opening = asyncio.create_task(stage.remote.new_session("/", system_prompt="Be brief.", meta=SENT))
        stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s", "_meta": {"first": 1}})
        session = await opening
        await stage.agent.close()
        agent = await stage.target.agents.get()
        await shake_hands(agent, EVERYTHING)
        call = await agent.expect("session/resume")
        assert call["params"]["_meta"] == SENT
        assert call["params"]["systemPrompt"]["content"] == [{"type": "text", "text": "Be brief."}]
        agent.answer(call, {"_meta": ANSWERED})
        reply = session.prompt("go")
        agent.answer(await agent.expect("session/prompt"), {"stopReason": "end_turn"})
        await reply
        assert session.meta == ANSWERED
        await agent.close()


@pytest.mark.parametrize("meta", [5, ["a"], {1: "one"}, {"a": object()}], ids=["number", "list", "key", "object"])
async def test_a_wrong_meta_is_refused_by_its_argument_and_nothing_is_sent(meta: Any) -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        session = await opened(stage)
        with pytest.raises(TypeError, match=r"session\.prompt\(meta=\.\.\.\) takes a dict of JSON values by name"):
            session.prompt("go", meta=meta)
        with pytest.raises(TypeError, match=r"session\.set_mode\(meta=\.\.\.\)"):
            await session.set_mode("two", meta=meta)
        with pytest.raises(TypeError, match="meta takes a dict"):
            await stage.remote.new_session("/", meta=meta)
        await stage.agent.expect_silence()


async def test_a_filter_that_the_protocol_does_not_have_is_refused() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        listing: Any = stage.remote.sessions(archived="all")  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match="archived must be one of exclude, include, only, got 'all'"):
            await anext(listing)


async def test_archived_sessions_are_asked_for_only_where_the_agent_archives() -> None:
    async with staged(capabilities={"sessionCapabilities": {"list": {}}}) as stage:
        with pytest.raises(accord.CapabilityMissing, match="archive"):
            await anext(stage.remote.sessions(archived="include"))


# System prompts

WIRE_FORM = {"mode": "append", "content": [{"type": "text", "text": "Be brief."}]}
OVERRIDE = v1.SystemPrompt("override", [v1.TextContent("You are a poet.")])

PROMPTED: dict[str, tuple[str, Doing]] = {
    "new": ("session/new", lambda remote, _: remote.new_session("/", system_prompt="Be brief.")),
    "load": ("session/load", lambda remote, _: remote.load("other", "/", system_prompt="Be brief.")),
    "resume": ("session/resume", lambda remote, _: remote.resume("other", "/", system_prompt="Be brief.")),
    "fork": ("session/fork", lambda _, session: session.fork(system_prompt="Be brief.")),
}


@pytest.mark.parametrize("name", PROMPTED)
async def test_a_system_prompt_goes_along_with_every_way_to_open_a_session(name: str) -> None:
    method, do = PROMPTED[name]
    async with staged(capabilities=EVERYTHING) as stage:
        opening = asyncio.ensure_future(do(stage.remote, await opened(stage)))
        call = await stage.agent.expect(method)
        assert call["params"]["systemPrompt"] == WIRE_FORM
        stage.agent.answer(call, {"sessionId": "other"})
        await opening


@pytest.mark.parametrize("name", PROMPTED)
async def test_a_system_prompt_is_refused_where_the_agent_takes_none(name: str) -> None:
    _, do = PROMPTED[name]
    capable = {"loadSession": True, "sessionCapabilities": {"resume": {}, "fork": {}}}
    async with staged(capabilities=capable) as stage:
        session = await stage.session()
        with pytest.raises(accord.CapabilityMissing, match="system_prompt"):
            await do(stage.remote, session)
        await stage.agent.expect_silence()


async def test_a_copy_of_a_session_gets_its_system_prompt() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        opening = asyncio.create_task(stage.remote.new_session("/", system_prompt="Be brief."))
        stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s"})
        session = await opening
        forking = asyncio.create_task(session.fork())
        call = await stage.agent.expect("session/fork")
        assert call["params"]["systemPrompt"] == WIRE_FORM
        stage.agent.answer(call, {"sessionId": "copy"})
        await forking


async def test_an_agent_that_only_adds_to_its_system_prompt_gets_none_in_its_place() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        with pytest.raises(accord.CapabilityMissing, match="override"):
            await stage.remote.new_session("/", system_prompt=OVERRIDE)
    capable = {"sessionCapabilities": {"systemPrompt": {"mode": {"override": {}}}}}
    async with staged(capabilities=capable) as stage:
        opening = asyncio.create_task(stage.remote.new_session("/", system_prompt=OVERRIDE))
        call = await stage.agent.expect("session/new")
        assert call["params"]["systemPrompt"]["mode"] == "override"
        stage.agent.answer(call, {"sessionId": "s"})
        await opening


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (5, "system_prompt takes text or a v1.SystemPrompt, got int 5"),
        ("", "system_prompt must hold some text"),
        (v1.SystemPrompt("append", []), "system_prompt must hold some text"),
        (v1.SystemPrompt("append", [v1.TextContent("a"), v1.ImageContent("", "image/png")]), "must hold only text"),
    ],
)
async def test_a_system_prompt_that_no_agent_can_use_is_refused_by_its_argument(given: Any, problem: str) -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        with pytest.raises((TypeError, ValueError), match=problem):
            await stage.remote.new_session("/", system_prompt=given)
        await stage.agent.expect_silence()


ENDPOINT = accord.Endpoint("openai", "https://gateway.example")
ACCOUNT: dict[str, tuple[str, Doing]] = {
    "login": ("authenticate", lambda remote, _: remote.login("key", meta=SENT)),
    "logout": ("logout", lambda remote, _: remote.logout(meta=SENT)),
    "providers": ("providers/list", lambda remote, _: remote.providers(meta=SENT)),
    "set_provider": ("providers/set", lambda remote, _: remote.set_provider("main", ENDPOINT, meta=SENT)),
    "disable_provider": ("providers/disable", lambda remote, _: remote.disable_provider("main", meta=SENT)),
}
"""What is done, and the method of its request."""


@pytest.mark.parametrize("name", ACCOUNT)
async def test_what_concerns_no_session_carries_meta(name: str) -> None:
    method, do = ACCOUNT[name]
    capabilities = {"auth": {"logout": {}}, "providers": {}}
    async with staged(capabilities=capabilities, methods=[{"id": "key", "name": "Key"}]) as stage:
        doing = asyncio.ensure_future(do(stage.remote, await stage.session()))
        call = await stage.agent.expect(method)
        assert call["params"]["_meta"] == SENT
        stage.agent.answer(call, {"providers": []} if name == "providers" else {})
        await doing


async def test_meta_that_is_no_object_is_refused_before_anything_is_sent() -> None:
    async with staged() as stage:
        with pytest.raises(TypeError, match=r"remote.login\(meta=...\) takes a dict of JSON values by name, got list"):
            await stage.remote.login("key", meta=[])  # type: ignore[arg-type]
        await stage.agent.expect_silence()
