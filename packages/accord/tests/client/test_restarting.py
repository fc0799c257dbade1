"""What callers may do while an agent is being restarted, and how sessions get through it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import accord
from accord.testing import ScriptedPeer
from tests.client.conftest import Stage, shake_hands, staged

RESUME = {"sessionCapabilities": {"resume": {}}}
METHOD_NOT_FOUND = -32601


def at_once(**options: Any) -> accord.Restart:
    return accord.Restart(first_pause=0.0, **options)


async def dies(stage: Stage) -> None:
    """The agent ends, and our side knows it; the restart has not begun."""
    await stage.agent.close()
    await stage.remote.peer.connection.closed()


async def second_agent(stage: Stage, capabilities: Any, answer: Any = None) -> ScriptedPeer:
    """The agent that is started in the dead one's place, once it has resumed the session."""
    agent = await stage.target.agents.get()
    await shake_hands(agent, capabilities)
    agent.answer(await agent.expect("session/resume"), answer)
    return agent


def say(agent: ScriptedPeer, text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    agent.tell("session/update", {"sessionId": "s", "update": update})


async def test_a_prompt_just_after_the_agents_death_waits_for_the_new_agent() -> None:
    async with staged(capabilities=RESUME, restart=at_once()) as stage:
        session = await stage.session()
        await dies(stage)
        reply = session.prompt("after the end")
        texts = asyncio.create_task(anext(reply.iter_text()))
        agent = await second_agent(stage, RESUME)
        prompt = await agent.expect("session/prompt")
        assert prompt["params"]["prompt"] == [{"type": "text", "text": "after the end"}]
        say(agent, "back")
        agent.answer(prompt, {"stopReason": "end_turn"})
        assert await texts == "back"
        assert (await reply).text == "back"
        assert [(it.speaker, it.text) for it in session.state.messages] == [
            ("user", "after the end"),
            ("agent", "back"),
        ]
        await agent.close()


async def test_a_prompt_while_the_agent_is_restarted_on_purpose_waits_for_the_new_agent() -> None:
    async with staged(capabilities=RESUME) as stage:
        session = await stage.session()
        restarting = asyncio.create_task(stage.remote._restarter.restart("new variables"))  # pyright: ignore[reportPrivateUsage]
        await stage.remote.peer.connection.closed()
        reply = session.prompt("hello")
        agent = await second_agent(stage, RESUME)
        agent.answer(await agent.expect("session/prompt"), {"stopReason": "end_turn"})
        assert (await reply).stop_reason == "end_turn"
        await restarting
        await agent.close()


async def test_a_new_session_just_after_the_agents_death_waits_for_the_new_agent() -> None:
    async with staged(restart=at_once()) as stage:
        await dies(stage)
        opening = asyncio.create_task(stage.remote.new_session("/"))
        agent = await stage.target.agents.get()
        await shake_hands(agent)
        agent.answer(await agent.expect("session/new"), {"sessionId": "new"})
        assert (await opening).id == "new"
        await agent.close()


async def test_prompts_that_wait_for_the_new_agent_are_sent_in_order() -> None:
    async with staged(capabilities=RESUME, restart=at_once()) as stage:
        session = await stage.session()
        await dies(stage)
        replies = [session.prompt(str(number)) for number in range(3)]
        assert session.is_busy
        agent = await second_agent(stage, RESUME)
        for number in range(3):
            prompt = await agent.expect("session/prompt")
            assert prompt["params"]["prompt"][0]["text"] == str(number)
            agent.answer(prompt, {"stopReason": "end_turn"})
        assert [(await reply).stop_reason for reply in replies] == ["end_turn"] * 3
        await agent.close()


async def test_a_prompt_that_waits_for_the_new_agent_can_be_cancelled() -> None:
    async with staged(capabilities=RESUME, restart=at_once()) as stage:
        session = await stage.session()
        await dies(stage)
        reply = session.prompt("never sent")
        assert (await reply.cancel()).stop_reason == "cancelled"
        assert not session.is_busy
        agent = await second_agent(stage, RESUME)
        sent = session.prompt("sent")
        prompt = await agent.expect("session/prompt")
        assert prompt["params"]["prompt"][0]["text"] == "sent"
        agent.answer(prompt, {"stopReason": "end_turn"})
        await sent
        await agent.close()


async def test_a_prompt_that_waits_for_the_new_agent_keeps_its_deadline() -> None:
    async with staged(capabilities=RESUME, restart=accord.Restart(first_pause=1000.0)) as stage:
        session = await stage.session()
        await dies(stage)
        with pytest.raises(accord.Timeout, match=r"not restarted within 0\.01 seconds"):
            await session.prompt("late", timeout=0.01)


async def test_a_prompt_whose_session_is_lost_in_the_restart_fails() -> None:
    async with staged(restart=at_once()) as stage:
        session = await stage.session()
        await dies(stage)
        reply = session.prompt("lost")
        agent = await stage.target.agents.get()
        await shake_hands(agent)
        with pytest.raises(accord.ConnectionClosed, match="the session was closed"):
            await reply
        await agent.close()


async def test_without_a_restart_policy_a_prompt_after_the_end_fails_at_once() -> None:
    async with staged() as stage:
        session = await stage.session()
        await dies(stage)
        with pytest.raises(accord.ConnectionClosed):
            await session.prompt("too late")


# Sessions


async def test_a_session_is_loaded_where_the_agent_declared_resume_and_does_not_know_it() -> None:
    events: asyncio.Queue[accord.Restarted] = asyncio.Queue()
    capabilities = {"loadSession": True, **RESUME}
    async with staged(capabilities=capabilities, restart=at_once(on_event=events.put_nowait)) as stage:
        session = await stage.session()
        stage.say("kept until the replay")
        await dies(stage)
        agent = await stage.target.agents.get()
        await shake_hands(agent, capabilities)
        agent.error(await agent.expect("session/resume"), METHOD_NOT_FOUND, "Method not found")
        load = await agent.expect("session/load")
        say(agent, "replayed")
        agent.answer(load)
        assert (await events.get()).resumed == [session]
        assert [it.text for it in session.state.messages] == ["replayed"]
        await agent.close()


async def test_another_error_of_resume_loses_the_session() -> None:
    events: asyncio.Queue[accord.Restarted] = asyncio.Queue()
    capabilities = {"loadSession": True, **RESUME}
    async with staged(capabilities=capabilities, restart=at_once(on_event=events.put_nowait)) as stage:
        session = await stage.session()
        await dies(stage)
        agent = await stage.target.agents.get()
        await shake_hands(agent, capabilities)
        agent.error(await agent.expect("session/resume"), -32002, "Session not found")
        assert (await events.get()).lost == [session]
        await agent.close()


async def test_closing_a_session_frees_it_here_even_if_the_agent_answers_with_an_error() -> None:
    async with staged(capabilities={"sessionCapabilities": {"close": {}}}) as stage:
        session = await stage.session()
        reply = session.prompt("go")
        await stage.agent.expect("session/prompt")
        closing = asyncio.create_task(session.close())
        stage.agent.error(await stage.agent.expect("session/close"), -32603, "cannot close")
        with pytest.raises(accord.PeerError, match="cannot close"):
            await closing
        assert not session.is_open
        assert stage.remote.open_sessions == {}
        with pytest.raises(accord.ConnectionClosed):
            await reply


async def test_an_option_may_be_set_to_its_own_current_value_although_it_is_not_listed() -> None:
    option = {
        "type": "select",
        "id": "model",
        "name": "Model",
        "currentValue": "custom",
        "options": [{"value": "small", "name": "Small"}],
    }
    async with staged() as stage:
        opening = asyncio.create_task(stage.remote.new_session("/"))
        stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s", "configOptions": [option]})
        session = await opening
        setting = asyncio.create_task(session.set_config("model", "custom"))
        request = await stage.agent.expect("session/set_config_option")
        assert request["params"]["value"] == "custom"
        stage.agent.answer(request, {"configOptions": [option]})
        await setting
        with pytest.raises(ValueError, match="it has small"):
            await session.set_config("model", "large")


async def test_closed_waits_for_an_end_that_no_restart_follows() -> None:
    async with staged(capabilities=RESUME, restart=at_once(attempts=1)) as stage:
        await stage.session()
        end = asyncio.create_task(stage.remote.closed())
        await dies(stage)
        agent = await second_agent(stage, RESUME)
        assert not end.done()
        await stage.remote.close()
        assert (await end).reason == "closed"
        await agent.close()


async def test_closed_says_how_an_agent_without_a_restart_ended() -> None:
    async with staged() as stage:
        end = asyncio.create_task(stage.remote.closed())
        await stage.agent.close()
        assert (await end).reason == "peer_closed"
