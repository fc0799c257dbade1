"""Sessions that last: listed, loaded, resumed, forked, closed and deleted, whichever store keeps them."""

import msgspec
import pytest

from accord import Agent, MemoryStore, PeerError, SqliteStore, v1

CWD = "/project"


class Count(msgspec.Struct):
    """What the author of these tests keeps for a session."""

    prompts: int = 0
    words: list[str] = []


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "sessions.sqlite3")


@pytest.fixture
def agent(store):
    """Repeats what it is told, and counts."""
    agent = Agent("parrot", store=store, state=Count, unstable=True)

    @agent.on_session
    async def opened(session):
        await session.modes.offer(["ask", "code"])
        await session.config.select("model", "Model", ["small", "large"])

    @agent.on_prompt
    async def parrot(turn):
        count = turn.session.state
        count.prompts += 1
        count.words.append(turn.text)
        await turn.say(f"{count.prompts}: ")
        await turn.say(turn.text)

    return agent


def load(session_id, cwd=CWD, **fields):
    return v1.LoadSessionRequest(session_id, cwd, [], **fields)


def said(updates):
    """Who said what, chunks of one message joined."""
    messages = {}
    for update in updates:
        if isinstance(update, v1.UserMessageChunk | v1.AgentMessageChunk):
            key = type(update).__name__.removesuffix("MessageChunk").lower(), update.message_id
            messages[key] = messages.get(key, "") + update.content.text
    return [(speaker, text) for (speaker, _), text in messages.items()]


async def a_conversation(serve, agent, *prompts):
    """A session in which this was said; its connection has ended."""
    async with serve(agent) as editor:
        session = await editor.open(CWD)
        for prompt in prompts or ("hello", "again"):
            await editor.prompt(session, prompt)
        return session, editor.updates


@pytest.mark.requirement("session.load.replays-everything", "session.load.replay-before-answer")
async def test_a_load_replays_both_sides_before_its_answer(serve, agent):
    session, live = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        await editor.request(load(session))
        assert said(editor.updates) == [
            ("user", "hello"),
            ("agent", "1: hello"),
            ("user", "again"),
            ("agent", "2: again"),
        ]
        assert [update for update in editor.updates if not isinstance(update, v1.UserMessageChunk)] == live


@pytest.mark.requirement("session.load.goes-on")
async def test_a_loaded_session_goes_on_with_its_state(serve, agent):
    session, _ = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        await editor.request(load(session))
        await editor.prompt(session, "more")
        assert said(editor.updates)[-1] == ("agent", "3: more")


@pytest.mark.requirement("session.resume.no-replay", "session.resume.ready-when-answered")
async def test_a_resume_replays_nothing_and_goes_on(serve, agent):
    session, _ = await a_conversation(serve, agent)
    async with serve(agent) as editor:
        answer = await editor.request(v1.ResumeSessionRequest(session, CWD))
        assert editor.updates == []
        assert answer.modes.current_mode_id == "ask"
        await editor.prompt(session, "more")
        assert editor.text == "3: more"
