"""An ACP agent as a tool: its connection, its sessions, and wrong arguments; `chat` stands for each adapter."""

import pytest

import accord
from accord_adapters import chat, current_turn


@pytest.fixture
def counter():
    """An agent that says how many prompts its session has had."""
    agent = accord.Agent("counter", state=list)

    @agent.on_prompt
    async def count(turn):
        turn.session.state.append(turn.text)
        await turn.say(f"{len(turn.session.state)}")

    return agent


async def test_each_call_is_a_session_of_its_own(counter, tmp_path):
    ask = chat.tool(accord.connect(counter), cwd=tmp_path)
    assert [await ask("a"), await ask("b")] == ["1", "1"]


async def test_with_one_session_the_agent_remembers_the_calls_before(counter, tmp_path):
    ask = chat.tool(accord.connect(counter), cwd=tmp_path, one_session=True)
    assert [await ask("a"), await ask("b")] == ["1", "2"]


async def test_an_open_agent_is_called_over_its_own_connection(counter, tmp_path):
    async with accord.connect(counter) as remote:
        assert await chat.tool(remote, cwd=tmp_path)("a") == "1"
        assert len(remote.open_sessions) == 1


async def test_a_connection_that_fails_is_tried_once_and_the_error_says_why(tmp_path):
    ask = chat.tool(accord.connect(["no-such-agent-program"]), cwd=tmp_path)
    for _ in range(2):
        with pytest.raises(accord.AccordError, match="no-such-agent-program"):
            await ask("a")


def test_the_connection_ends_with_the_event_loop(counter, tmp_path):
    closed = []

    @counter.on_session
    async def opened(session):
        session.resources.callback(closed.append, session.id)

    async def main():
        return await chat.tool(accord.connect(counter), cwd=tmp_path)("a")

    assert accord.run(main()) == "1"
    assert len(closed) == 1


def test_what_is_no_agent_is_refused_with_what_to_pass():
    with pytest.raises(TypeError, match=r"accord\.connect\(\.\.\.\)"):
        chat.tool("gemini")  # type: ignore[arg-type]


def test_a_name_in_ask_before_that_is_no_tool_is_refused():
    with pytest.raises(ValueError, match="ask_before must be one of publish, got 'publsh'; did you mean publish"):
        chat.serve("m", tools=[publish], ask_before=["publsh"])


def test_a_function_whose_parameters_have_no_names_is_refused():
    def of_all(*texts: str) -> str:
        """Join."""
        return "".join(texts)

    with pytest.raises(TypeError, match=r"of_all\(\) has the parameter \*texts"):
        chat.serve("m", tools=[of_all])


def test_the_current_turn_outside_of_a_turn_is_an_error_that_says_where_to_call_it():
    with pytest.raises(accord.AccordError, match="outside of a turn: call it in a tool"):
        current_turn()


def publish(text: str) -> str:
    """Publish a text."""
    return text
