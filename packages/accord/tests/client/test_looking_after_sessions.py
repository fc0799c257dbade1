"""Archiving, naming and asking after sessions of an agent, and the status of its login, as it goes over the wire."""

from __future__ import annotations

import asyncio

import pytest

import accord
from accord import v1
from tests.client.conftest import staged

EVERYTHING = {
    "auth": {"status": {}},
    "sessionCapabilities": {name: {} for name in ("list", "archive", "status", "title")},
}


async def test_archiving_a_session_ends_it_here() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        session = await stage.session()
        archiving = asyncio.create_task(stage.remote.archive("s", meta={"a": 1}))
        call = await stage.agent.expect("session/archive")
        assert call["params"] == {"sessionId": "s", "_meta": {"a": 1}}
        stage.agent.answer(call, {"_meta": {"b": 2}})
        assert await archiving == {"b": 2}
        assert not session.is_open


async def test_a_session_that_the_agent_did_not_archive_stays_open_here() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        session = await stage.session()
        archiving = asyncio.create_task(stage.remote.archive("s"))
        stage.agent.error(await stage.agent.expect("session/archive"), -32603)
        with pytest.raises(accord.PeerError):
            await archiving
        assert session.is_open


async def test_unarchiving_opens_nothing() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        doing = asyncio.create_task(stage.remote.unarchive("s"))
        call = await stage.agent.expect("session/unarchive")
        assert call["params"] == {"sessionId": "s"}
        stage.agent.answer(call, {})
        assert await doing == {}
        assert not stage.remote.open_sessions


async def test_a_status_of_a_later_protocol_is_shown_as_it_is() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        for status in ("open", "saved", "hibernated"):
            asking = asyncio.create_task(stage.remote.status("s"))
            call = await stage.agent.expect("session/status")
            assert call["params"] == {"sessionId": "s"}
            stage.agent.answer(call, {"status": status, "_meta": {"a": 1}})
            answer = await asking
            assert (answer.status, answer.meta) == (status, {"a": 1})


async def test_a_title_is_the_one_that_the_agent_stored() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        session = await stage.session()
        naming = asyncio.create_task(stage.remote.set_title("s", " Lexer "))
        call = await stage.agent.expect("session/set_title")
        assert call["params"] == {"sessionId": "s", "title": " Lexer "}
        stage.agent.answer(call, {"title": "Lexer"})
        assert await naming == "Lexer"
        assert session.state.title == "Lexer"


async def test_an_agent_says_who_is_logged_in_and_when_that_changes() -> None:
    async with staged(capabilities=EVERYTHING) as stage:
        told: asyncio.Queue[v1.AuthStatusUpdateNotification] = asyncio.Queue()
        stage.remote.on(v1.AuthStatusUpdateNotification)(told.put_nowait)
        asking = asyncio.create_task(stage.remote.auth_status())
        stage.agent.answer(await stage.agent.expect("auth/status"), {"state": "expired"})
        assert (await asking).state == "expired"
        stage.agent.tell("auth/status_update", {"state": "authenticated", "accounts": [{"label": "ada"}, 5]})
        update = await told.get()
        assert (update.state, update.accounts) == ("authenticated", [v1.AuthAccount("ada")])


async def test_what_the_agent_did_not_declare_is_not_asked_of_it() -> None:
    async with staged() as stage:
        remote = stage.remote
        asked = (
            remote.archive("s"),
            remote.unarchive("s"),
            remote.status("s"),
            remote.set_title("s", "T"),
            remote.auth_status(),
        )
        for asking in asked:
            with pytest.raises(accord.CapabilityMissing):
                await asking
        sessions = remote.capabilities.sessions
        assert [sessions.archive, sessions.status, sessions.title, sessions.system_prompt] == [False] * 4
