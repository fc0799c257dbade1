"""A session that was taken elsewhere: it has ended where it was open, and can be taken back."""

import contextlib

import pytest

import accord


@pytest.fixture
def agent(tmp_path):
    agent = accord.Agent("echo", store=tmp_path / "sessions.sqlite3", state=dict)

    @agent.on_prompt
    async def echo(turn):
        await turn.say(turn.text)

    @agent.on_session
    async def begin(session):
        await session.modes.offer([("plan", "Plan"), ("code", "Code")])

    return agent


def texts(session):
    return [message.text for message in session.state.messages]


async def test_a_session_that_was_taken_elsewhere_can_be_loaded_again_and_again(agent):
    async with accord.connect(agent) as first, accord.connect(agent) as second:
        here, elsewhere = first, second
        session = await here.new_session("/")
        expected = []
        for number in range(4):
            text = str(number)
            taken = await elsewhere.load(session.id, "/")
            assert texts(taken) == expected
            await taken.prompt(text)
            expected += [text, text]
            with pytest.raises(accord.PeerError) as caught:
                await session.prompt("lost")
            assert caught.value.data["reason"] == "taken"
            assert not session.is_open
            assert session.id not in here.open_sessions
            session, here, elsewhere = taken, elsewhere, here


async def test_a_session_that_was_taken_elsewhere_can_be_closed_and_loaded_again(agent):
    async with accord.connect(agent) as first, accord.connect(agent) as second:
        session = await first.new_session("/")
        taken = await second.load(session.id, "/")
        with pytest.raises(accord.PeerError):
            await session.prompt("lost")
        await session.close()
        again = await first.load(session.id, "/")
        with pytest.raises(accord.PeerError):
            await taken.prompt("lost")
        assert (await again.prompt("kept")).text == "kept"


async def test_closing_a_session_that_its_agent_does_not_have_any_more_ends_it_here(agent):
    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        await remote.request(accord.v1.CloseSessionRequest(session.id))
        await session.close()
        assert not session.is_open
        assert (await remote.load(session.id, "/")).is_open


async def test_prompts_that_wait_for_a_turn_of_a_session_that_was_taken_end_too(agent):
    async with accord.connect(agent) as first, accord.connect(agent) as second:
        session = await first.new_session("/")
        await second.load(session.id, "/")
        replies = [session.prompt(str(number)) for number in range(3)]
        with pytest.raises(accord.PeerError):
            await replies[0]
        for reply in replies[1:]:
            with contextlib.suppress(accord.AccordError):
                assert (await reply).stop_reason == "cancelled"
        assert not session.is_open


async def test_a_mode_of_a_session_that_was_taken_elsewhere_is_refused_with_the_reason(agent):
    async with accord.connect(agent) as first, accord.connect(agent) as second:
        session = await first.new_session("/")
        await second.load(session.id, "/")
        with pytest.raises(accord.PeerError) as caught:
            await session.set_mode("code")
        assert caught.value.data["reason"] == "taken"
        assert (await first.load(session.id, "/")).is_open
