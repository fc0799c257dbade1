"""What other agents of version 2 do, and the protocol allows: our client follows it."""

from __future__ import annotations

import pytest

import accord
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
