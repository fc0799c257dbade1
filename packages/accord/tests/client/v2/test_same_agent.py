"""The same agent and the same client, in version 1 and in version 2: what users get is the same."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import accord
from accord.schema import v1


class Person(msgspec.Struct):
    name: str


VERSIONS = pytest.mark.parametrize("version", [1, 2])


def an_agent(prompt, **options) -> accord.Agent:
    agent = accord.Agent("both", versions=(1, 2), **options)
    agent.on_prompt(prompt)
    return agent


def connecting(agent, version, client=None):
    return accord.connect(agent, client, versions=(version,))


@VERSIONS
async def test_the_outcome_of_a_turn(version):
    async def work(turn: accord.Turn) -> None:
        await turn.think("hm")
        await turn.say("Hel")
        async with turn.tool("Look", kind="read") as tool:
            await tool.text("found")
        await turn.say("lo")

    async with connecting(an_agent(work), version) as remote:
        assert remote.version == version
        session = await remote.new_session("/")
        reply = session.prompt("Hi")
        text = "".join([piece async for piece in reply.iter_text()])
        outcome = await reply
        assert (outcome.stop_reason, outcome.text, text) == ("end_turn", "Hello", "Hello")
        [call] = outcome.tool_calls
        assert (call.title, call.kind, call.status, call.text) == ("Look", "read", "completed", "found")
        assert [message.text for message in session.state.messages] == ["Hi", "hm", "Hel", "lo"]


@VERSIONS
async def test_the_updates_of_a_turn_have_the_same_classes(version):
    async def work(turn: accord.Turn) -> None:
        await turn.say("a")
        async with turn.tool("Look") as tool:
            await tool.text("b")
        await turn.plan("one", "two")
        await turn.usage(10, 100)

    async with connecting(an_agent(work), version) as remote:
        session = await remote.new_session("/")
        kinds = [type(update).__name__ async for update in session.prompt("Hi")]
        seen = set(kinds) & {"AgentMessageChunk", "ToolCallProgress", "PlanUpdate", "UsageUpdate"}
        assert seen == {"AgentMessageChunk", "ToolCallProgress", "PlanUpdate", "UsageUpdate"}
        assert [entry.content for entry in session.state.plan] == ["one", "two"]
        assert session.state.usage is not None
        assert (session.state.usage.used, session.state.usage.size) == (10, 100)


@VERSIONS
@pytest.mark.parametrize("error", [accord.RequestError(-32001, "Out of credit", {"left": 0}), ValueError("a bug")])
async def test_a_failed_turn(version, error):
    async def work(turn: accord.Turn) -> None:
        await turn.say("half")
        raise error

    async with connecting(an_agent(work), version) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.PeerError) as caught:
            await session.prompt("Hi")
        expected = -32001 if isinstance(error, accord.RequestError) else -32603
        assert (caught.value.code, caught.value.method) == (expected, "session/prompt")
        assert caught.value.data == ({"left": 0} if expected == -32001 else None)
        assert session.state.messages[-1].text == "half"


@VERSIONS
async def test_a_refused_turn_is_marked(version):
    async def work(turn: accord.Turn) -> str:
        await turn.say("no")
        return "refusal"

    async with connecting(an_agent(work), version) as remote:
        session = await remote.new_session("/")
        outcome = await session.prompt("Hi")
        assert outcome.stop_reason == "refusal"
        assert [message.refused for message in session.state.messages] == [True, True]


@VERSIONS
async def test_a_cancelled_turn_still_delivers_its_last_words(version):
    started = asyncio.Event()

    async def work(turn: accord.Turn) -> None:
        try:
            started.set()
            await asyncio.get_running_loop().create_future()
        finally:
            await turn.say("bye")

    async with connecting(an_agent(work), version) as remote:
        session = await remote.new_session("/")
        reply = session.prompt("Hi")
        await started.wait()
        outcome = await reply.cancel()
        assert (outcome.stop_reason, outcome.text) == ("cancelled", "bye")


@VERSIONS
async def test_a_second_prompt_waits_for_the_first(version):
    go_on = asyncio.Event()

    async def work(turn: accord.Turn) -> None:
        await go_on.wait()
        await turn.say(f"to {turn.text}")

    async with connecting(an_agent(work), version) as remote:
        session = await remote.new_session("/")
        first, second = session.prompt("one"), session.prompt("two")
        go_on.set()
        assert [(await first).text, (await second).text] == ["to one", "to two"]
        assert [message.text for message in session.state.messages] == ["one", "to one", "two", "to two"]
        await session.idle()


@VERSIONS
@pytest.mark.parametrize("answer", [True, False])
async def test_a_permission(version, answer):
    asked: list[accord.PermissionQuestion] = []

    def ask(question: accord.PermissionQuestion) -> bool:
        asked.append(question)
        return answer

    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Edit a.py", kind="edit") as tool:
            await turn.say("yes" if await tool.ask() else "no")

    client = accord.Client(permissions=ask)
    async with connecting(an_agent(work), version, client) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("Hi")).text == ("yes" if answer else "no")
        [question] = asked
        assert (question.title, question.tool_call.kind) == ("Edit a.py", "edit")


@VERSIONS
async def test_modes_options_and_commands(version):
    agent = an_agent(lambda turn: iter([str(turn.session.modes.current)]))

    @agent.on_session
    async def begin(session: accord.Session) -> None:
        await session.modes.offer(["ask", "code"])
        await session.config.offer("fast", "Fast")

    @agent.command("review", "Review the changes")
    async def review(turn: accord.Turn) -> None:
        await turn.say("fine")

    async with connecting(agent, version) as remote:
        session = await remote.new_session("/")
        assert [mode.id for mode in session.state.modes] == ["ask", "code"]
        await session.set_mode("code")
        assert session.state.mode == "code"
        await session.set_config("fast", True)
        option = session.state.option("fast")
        assert isinstance(option, v1.SessionConfigBoolean)
        assert option.current_value is True
        assert (await session.prompt("which?")).text == "code"
        assert [command.name for command in session.state.commands] == ["review"]
        assert (await session.prompt("/review")).text == "fine"
        with pytest.raises(ValueError, match="no mode 'dream'"):
            await session.set_mode("dream")


@VERSIONS
async def test_sessions_are_listed_loaded_resumed_closed_and_deleted(version):
    agent = an_agent(lambda turn: iter(["to ", turn.text]), store=accord.MemoryStore())
    async with connecting(agent, version) as remote:
        session = await remote.new_session("/")
        await session.prompt("one")
        await session.close()
        assert [info.session_id async for info in remote.sessions("/")] == [session.id]
        again = await remote.load(session.id, "/")
        assert [message.text for message in again.state.messages] == ["one", "to one"]
        assert (await again.prompt("two")).text == "to two"
        await again.close()
        resumed = await remote.resume(session.id, "/")
        assert resumed.state.messages == []
        assert (await resumed.prompt("three")).text == "to three"
        await remote.delete(session.id)
        assert not resumed.is_open
        assert [info async for info in remote.sessions("/")] == []


@VERSIONS
async def test_logging_in_and_out(version):
    agent = an_agent(lambda _: iter(["in"]))
    logged_in: list[bool] = []

    @agent.login("account", "Account")
    async def login(_: accord.Login) -> None:
        logged_in.append(True)

    @agent.on_logout
    async def logout() -> None:
        logged_in.clear()

    async with connecting(agent, version) as remote:
        assert [method.id for method in remote.auth_methods] == ["account"]  # type: ignore[union-attr]
        assert remote.capabilities.logout
        await remote.login()
        assert logged_in == [True]
        await remote.logout()
        assert logged_in == []


@VERSIONS
async def test_a_form(version):
    async def work(turn: accord.Turn) -> None:
        elicited = await turn.elicit("Who?", Person)
        await turn.say(str(elicited))

    client = accord.Client(elicitation=lambda _: {"name": "Ada"})
    async with connecting(an_agent(work), version, client) as remote:
        session = await remote.new_session("/")
        assert "Ada" in (await session.prompt("Hi")).text


@VERSIONS
async def test_a_failed_turn_says_what_it_had_come_to(version):
    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Look", kind="read") as tool:
            await tool.text("found")
        await turn.say("half")
        raise accord.RequestError(-32001, "Out of credit")

    async with connecting(an_agent(work), version) as remote:
        session = await remote.new_session("/")
        with pytest.raises(accord.PeerError) as caught:
            await session.prompt("Hi")
        outcome = caught.value.outcome
        assert (outcome.stop_reason, outcome.text) == ("error", "half")
        assert [call.title for call in outcome.tool_calls] == ["Look"]
        with pytest.raises(accord.PeerError) as read:
            [update async for update in session.prompt("Hi")]
        assert read.value.outcome.text == "half"
        with pytest.raises(accord.PeerError) as other:
            await remote.load("unknown", "/")
        assert other.value.outcome is None
