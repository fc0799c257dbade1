"""`accord.chain` in a program: a target of `connect`, an agent to serve, a component of another chain."""

from __future__ import annotations

import asyncio
import sys

import pytest

import accord
from accord import v1


def shouting(name="shout"):
    proxy = accord.Proxy(name)

    @proxy.updates
    def shout(update):
        if not isinstance(update, v1.AgentMessageChunk):
            return update
        return v1.AgentMessageChunk.of(update.content.text.upper() + "!")

    return proxy


def echoing():
    agent = accord.Agent("echo")

    @agent.on_prompt
    async def echo(turn):
        await turn.say(turn.text)

    return agent


async def answer(target, tmp_path):
    async with accord.connect(target) as remote:
        session = await remote.new_session(tmp_path)
        return (await session.prompt("hello")).text


async def test_a_client_connects_with_a_chain(tmp_path):
    assert await answer(accord.chain(shouting(), echoing()), tmp_path) == "HELLO!"


async def test_components_may_be_commands_and_objects(tmp_path):
    (tmp_path / "echo.py").write_text(
        "import accord\nagent = accord.Agent('echo')\n\n\n@agent.on_prompt\nasync def echo(turn):\n"
        "    await turn.say(turn.text)\n\n\nagent.run()\n"
    )
    command = [sys.executable, str(tmp_path / "echo.py")]
    assert await answer(accord.chain(shouting(), command), tmp_path) == "HELLO!"


async def test_a_chain_of_proxies_is_a_component(tmp_path):
    inner = accord.chain(shouting(), shouting(), as_proxy=True)
    assert await answer(accord.chain(inner, shouting(), echoing()), tmp_path) == "HELLO!!!"
    assert await answer(accord.chain(accord.chain(as_proxy=True), echoing()), tmp_path) == "hello"


async def test_connections_of_one_chain_have_components_of_their_own(tmp_path):
    chain = accord.chain(shouting(), echoing())
    answers = await asyncio.gather(*(answer(chain, tmp_path) for _ in range(5)))
    assert answers == ["HELLO!"] * 5


async def test_a_chain_is_served_over_http(tmp_path):
    chain = accord.chain(shouting(), echoing())
    async with accord.http.serving(chain, port=0) as server:
        assert await answer(server.url, tmp_path) == "HELLO!"


async def test_an_agent_that_fails_fails_the_connection_with_its_name(tmp_path):
    with pytest.raises(accord.AccordError, match="no-such-program"):
        await answer(accord.chain(shouting(), ["no-such-program"]), tmp_path)


async def test_what_an_agent_asks_goes_back_to_the_client(tmp_path):
    agent = accord.Agent("asking")
    (tmp_path / "a.txt").write_text("from the file")

    @agent.on_prompt
    async def ask(turn):
        await turn.say(await turn.client.read_text_file(tmp_path / "a.txt"))

    client = accord.Client(files=True)
    async with accord.connect(accord.chain(shouting(), agent), client) as remote:
        session = await remote.new_session(tmp_path)
        assert (await session.prompt("go")).text == "FROM THE FILE!"


def test_what_is_no_component_is_refused():
    with pytest.raises(ValueError, match="needs at least one component"):
        accord.chain()
    with pytest.raises(TypeError, match=r"accord.chain\(\) as component 2 takes an Agent, a Proxy, a command, a URL"):
        accord.chain(shouting(), 5)


def named(name):
    agent = accord.Agent(name)

    @agent.on_prompt
    async def reply(turn):
        await turn.say(name)

    return agent


@pytest.mark.parametrize("version", [1, 2])
async def test_the_components_are_chosen_from_the_first_request_of_each_client(version):
    seen = []

    def by_client(request: v1.InitializeRequest):
        seen.append((request.client_info.name, request.client_capabilities.fs.read_text_file))
        loud = [shouting()] if request.client_info.name == "loud" else []
        return [*loud, named(f"for {request.client_info.name}")]

    chain = accord.chain(by_client)
    for name, answer in (("loud", "FOR LOUD!"), ("quiet", "for quiet")):
        client = accord.Client(name, files=True)
        async with accord.connect(chain, client, versions=(version,)) as remote:
            session = await remote.new_session("/")
            assert (await session.prompt("go")).text == answer
    assert seen == [("loud", version == 1), ("quiet", version == 1)]  # version 2 lends no files


async def test_a_function_that_chooses_may_refuse_a_client():
    def nobody(request):
        raise accord.RequestError(-32050, f"no agent for {request.client_info.name}")

    with pytest.raises(accord.PeerError, match=r"no agent for me \[-32050\]"):
        async with accord.connect(accord.chain(nobody), accord.Client("me")):
            pass


@pytest.mark.parametrize("chosen", [[], None, "gemini", [7]])
async def test_a_function_that_chooses_no_components_fails_the_connection_and_is_named_in_the_log(chosen, caplog):
    def choose_badly(_):
        return chosen

    with pytest.raises(accord.PeerError, match="the components of the chain are unknown"):
        async with accord.connect(accord.chain(choose_badly)):
            pass
    assert "accord.chain()" in caplog.text


def test_a_chain_takes_components_or_a_function():
    with pytest.raises(ValueError, match="not both"):
        accord.chain(lambda _: [], named("a"))
    chain = accord.chain(lambda _: [])
    assert "chosen by" in chain.program
