"""What a client may ask an agent beside prompts, as it goes over the wire."""

from __future__ import annotations

import asyncio

import pytest

import accord
from accord import v1
from tests.client.conftest import staged

REQUIRED = {"providerId": "main", "supported": ["openai"], "required": True, "current": None}
OTHER = {"providerId": "other", "supported": ["_example.com"], "required": False, "current": None}


@pytest.mark.requirement("providers.required-kept", "providers.client-unknown-protocol")
async def test_the_providers_of_an_agent_are_listed_set_and_disabled():
    async with staged(capabilities={"providers": {}}) as stage:
        listing = asyncio.create_task(stage.remote.providers())
        stage.agent.answer(await stage.agent.expect("providers/list"), {"providers": [REQUIRED, OTHER]})
        assert [provider.provider_id for provider in await listing] == ["main", "other"]

        setting = asyncio.create_task(
            stage.remote.set_provider(
                "main", accord.Endpoint("openai", "http://127.0.0.1:1/v1", {"Authorization": "Bearer x"})
            )
        )
        call = await stage.agent.expect("providers/set")
        assert call["params"] == {
            "providerId": "main",
            "apiType": "openai",
            "baseUrl": "http://127.0.0.1:1/v1",
            "headers": {"Authorization": "Bearer x"},
        }
        stage.agent.answer(call, {})
        await setting

        with pytest.raises(ValueError, match="cannot be disabled; the agent requires it"):
            await stage.remote.disable_provider("main")
        disabling = asyncio.create_task(stage.remote.disable_provider("other"))
        call = await stage.agent.expect("providers/disable")
        assert call["params"] == {"providerId": "other"}
        stage.agent.answer(call, {})
        await disabling


async def test_what_an_agent_did_not_declare_is_not_asked_of_it():
    async with staged() as stage:
        for ask in (stage.remote.providers(), stage.remote.delete("s"), stage.remote.logout()):
            with pytest.raises(accord.CapabilityMissing):
                await ask


async def test_a_fork_is_a_session_of_its_own():
    async with staged(capabilities={"sessionCapabilities": {"fork": {}}}) as stage:
        session = await stage.session()
        forking = asyncio.create_task(session.fork())
        call = await stage.agent.expect("session/fork")
        assert call["params"]["sessionId"] == session.id
        stage.agent.answer(call, {"sessionId": "copy"})
        copy = await forking
        assert (copy.id, copy.cwd) == ("copy", session.cwd)
        assert set(stage.remote.open_sessions) == {session.id, copy.id}


async def test_a_deleted_session_is_no_longer_open_here():
    async with staged(capabilities={"sessionCapabilities": {"delete": {}}}) as stage:
        session = await stage.session()
        deleting = asyncio.create_task(stage.remote.delete(session.id))
        call = await stage.agent.expect("session/delete")
        assert call["params"] == {"sessionId": session.id}
        stage.agent.answer(call, {})
        await deleting
        assert not session.is_open
        assert not stage.remote.open_sessions


async def test_a_system_prompt_goes_only_to_an_agent_that_takes_one():
    prompt = v1.SystemPrompt("append", [v1.TextContent("Be brief.")])
    async with staged() as stage:
        with pytest.raises(accord.CapabilityMissing):
            await stage.remote.new_session("/", system_prompt=prompt)
    async with staged(capabilities={"sessionCapabilities": {"systemPrompt": {}}}) as stage:
        opening = asyncio.create_task(stage.remote.new_session("/", system_prompt=prompt))
        call = await stage.agent.expect("session/new")
        assert call["params"]["systemPrompt"] == {"mode": "append", "content": [{"type": "text", "text": "Be brief."}]}
        stage.agent.answer(call, {"sessionId": "s"})
        await opening


async def test_a_session_whose_opening_was_cancelled_when_it_was_there_is_closed_again():
    async with staged(capabilities={"sessionCapabilities": {"close": {}}}) as stage:
        opening = asyncio.create_task(stage.remote.new_session("/"))

        @stage.remote.on(v1.SessionNotification)
        def update(_: v1.SessionNotification) -> None:
            opening.cancel()  # the answer is here, and who waits for it has not run since

        call = await stage.agent.expect("session/new")
        stage.agent.send(
            {"jsonrpc": "2.0", "id": call["id"], "result": {"sessionId": "s"}},
            {
                "jsonrpc": "2.0",
                "method": "session/update",
                "params": {"sessionId": "s", "update": {"sessionUpdate": "session_info_update", "title": "early"}},
            },
        )
        with pytest.raises(asyncio.CancelledError):
            await opening
        call = await stage.agent.expect("session/close")
        assert call["params"] == {"sessionId": "s"}
        stage.agent.answer(call, {})
        await stage.agent.expect_silence()
        assert not stage.remote.open_sessions


@pytest.mark.parametrize("versions", [(1,), (2, 1)])
async def test_mcp_capabilities_under_their_older_name_are_read(versions):
    async with staged(capabilities={"mcp": {"http": True}}, versions=versions) as stage:
        assert stage.remote.capabilities.mcp.http
    async with staged(capabilities={"mcp": {"http": True}, "mcpCapabilities": {"sse": True}}) as stage:
        assert (stage.remote.capabilities.mcp.http, stage.remote.capabilities.mcp.sse) == (False, True)


async def test_a_notification_in_plain_json_goes_out_as_it_is() -> None:
    async with staged() as stage:
        await stage.remote.notify_raw("_example.com/seen", {"page": 3})
        assert (await stage.agent.expect("_example.com/seen"))["params"] == {"page": 3}
