"""What other agents of version 2 do, and the protocol allows: our client follows it."""

from __future__ import annotations

import asyncio

import pytest

import accord
from accord import v1
from tests.client.v2.conftest import shake_hands_v2, staged_v2


async def test_an_agent_that_cancels_its_work_for_the_next_prompt_ends_each_reply_by_its_own_work():
    async with staged_v2() as stage:
        session = await stage.session()
        first = session.prompt("one")
        await stage.insertion("u1")
        stage.state("running")
        stage.say("half")
        await first.inserted
        second = session.prompt("two")
        prompt = await stage.agent.expect("session/prompt")
        stage.idle("cancelled")
        outcome = await first
        assert (outcome.stop_reason, outcome.text) == ("cancelled", "half")
        stage.insert(prompt, "u2")
        stage.state("running")
        stage.say("whole", messageId="a2")
        stage.idle()
        assert (await second).text == "whole"


async def words(reply):
    return [update.content.text async for update in reply if isinstance(update, v1.AgentMessageChunk)]


async def test_an_agent_that_says_nothing_but_its_answer_and_an_idle_before_the_receipt_ends_the_prompt():
    async with staged_v2() as stage:
        session = await stage.session()
        for number in range(2):
            reply = session.prompt("/help")
            prompt = await stage.agent.expect("session/prompt")
            stage.say("Help text.", messageId=f"a{number}")
            stage.idle()
            stage.agent.answer(prompt, {"messageId": f"u{number}"})
            outcome = await reply
            assert (outcome.stop_reason, outcome.text) == ("end_turn", "Help text.")
        first, second = session.prompt("one"), session.prompt("two")
        prompts = [await stage.agent.expect("session/prompt") for _ in range(2)]
        for prompt, text in zip(prompts, ("1", "2"), strict=True):
            stage.say(text, messageId=f"of {text}")
            stage.idle()
            stage.agent.answer(prompt, {"messageId": f"u{text}"})
        assert [await words(first), await words(second)] == [["1"], ["2"]]
        assert [(await first).text, (await second).text] == ["1", "2"]


async def test_a_held_prompt_does_not_get_the_updates_of_the_one_before_it():
    async with staged_v2() as stage:
        session = await stage.session()
        first, second = session.prompt("one"), session.prompt("two")
        prompts = [await stage.agent.expect("session/prompt") for _ in range(2)]
        for number, prompt in enumerate(prompts):
            stage.agent.answer(prompt, {"messageId": f"u{number}"})
            stage.state("running")
            stage.say(f"{number}", messageId=f"a{number}")
            stage.idle()
        assert [await words(first), await words(second)] == [["0"], ["1"]]


async def test_a_prompt_whose_receipt_comes_last_does_not_get_the_updates_of_the_one_before_it():
    async with staged_v2() as stage:
        session = await stage.session()
        first, second = session.prompt("one"), session.prompt("two")
        prompts = [await stage.agent.expect("session/prompt") for _ in range(2)]
        stage.agent.answer(prompts[0], {"messageId": "u0"})
        stage.state("running")
        stage.say("0", messageId="a0")
        stage.idle()
        stage.state("running")
        stage.say("1", messageId="a1")
        stage.agent.answer(prompts[1], {"messageId": "u1"})
        stage.idle()
        assert [await words(first), await words(second)] == [["0"], ["1"]]


WORK = {
    "before its receipt": [],
    "after its receipt": ["receipt"],
    "after its receipt, with its message told of": ["message", "receipt"],
    "with its message told of, before its receipt": ["message"],
    "while the agent works": ["message", "receipt", "running"],
    "while the agent works, before its receipt": ["running"],
    "after an idle that said nothing": ["receipt", "idle"],
}


@pytest.mark.parametrize("name", WORK)
async def test_cancel_ends_a_prompt_in_every_state(name):
    """An agent owes an `idle` for work that it has told of, and an answer to each request, and nothing else."""
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        prompt = await stage.agent.expect("session/prompt")
        steps = {
            "message": lambda: stage.echo("u1", "Hi"),
            "receipt": lambda: stage.agent.answer(prompt, {"messageId": "u1"}),
            "running": lambda: stage.state("running"),
            "idle": lambda: stage.idle(None),
        }
        for step in WORK[name]:
            steps[step]()
        stage.say("x")
        async for _ in reply:
            break  # all of it has arrived
        cancelling = asyncio.create_task(reply.cancel())
        if "receipt" not in WORK[name]:
            await stage.agent.expect("$/cancel_request")
            if "running" in WORK[name]:
                await stage.agent.expect("session/cancel")
            stage.agent.error(prompt, -32800, "cancelled")
        elif "running" in WORK[name]:
            await stage.agent.expect("session/cancel")
            stage.idle("cancelled")
        else:
            await stage.agent.expect("session/cancel")
            stage.agent.error(await stage.agent.expect("session/list"), -32601, "not here")
        assert (await cancelling).stop_reason == "cancelled"


async def test_a_cancelled_prompt_waits_for_the_idle_of_work_that_begins_after_all():
    async with staged_v2() as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        stage.agent.answer(await stage.agent.expect("session/prompt"), {"messageId": "u1"})
        await reply.inserted
        cancelling = asyncio.create_task(reply.cancel())
        await stage.agent.expect("session/cancel")
        listing = await stage.agent.expect("session/list")
        stage.state("running")
        stage.agent.answer(listing, {"sessions": []})
        stage.say("stopped")
        stage.idle("cancelled")
        assert (await cancelling).text == "stopped"


async def test_a_replay_under_new_ids_shows_everything_once_and_needs_no_state():
    async with staged_v2(restart=accord.Restart(first_pause=0.0)) as stage:
        session = await stage.session()
        reply = session.prompt("Hi")
        await stage.insertion("u1")
        stage.state("running")
        stage.say("Hello")
        stage.idle()
        await reply
        await stage.agent.close()
        stage.agent = await stage.target.agents.get()
        await shake_hands_v2(stage.agent)
        stage.agent.error(await stage.agent.expect("session/resume"), -32601, "no resume without a replay")
        request = await stage.agent.expect("session/resume")
        stage.echo("u7", "Hi")
        stage.say("Hello", messageId="a7")
        stage.agent.answer(request, {})
        late = session.prompt("more")
        await stage.insertion("u8")
        stage.state("running")
        stage.say("Yes", messageId="a8")
        stage.idle()
        assert (await late).text == "Yes"
        assert [message.text for message in session.state.messages] == ["Hi", "Hello", "more", "Yes"]


async def test_work_that_finds_no_credentials_fails_as_a_prompt_that_was_refused_for_it():
    async with staged_v2() as stage:
        session = await stage.session()
        codes = []
        for receipt in (True, False):
            reply = session.prompt("Hi")
            prompt = await stage.agent.expect("session/prompt")
            if receipt:
                stage.insert(prompt, "u1")
                stage.state("running")
                stage.idle("error", error={"code": -32000, "message": "log in first"})
            else:
                stage.agent.error(prompt, -32000, "log in first")
            with pytest.raises(accord.PeerError, match="log in first") as caught:
                await reply
            codes.append(caught.value.code)
        assert codes == [-32000, -32000]
