"""Slash commands: advertised once the session exists, recognized in prompts."""

import asyncio

import pytest

from accord import Agent, memory_pair, v1
from accord.testing import ScriptedPeer


@pytest.fixture
def agent():
    agent = Agent("commands")

    @agent.command("web", "Search the web", hint="what for")
    async def web(turn, query):
        await turn.say(f"searching {query!r} with {len(turn.prompt) - 1} more")

    @agent.command("test", "Run the tests")
    async def test(turn):
        yield f"testing, {turn.command} {turn.arguments!r}"

    @agent.on_prompt
    async def other(turn):
        await turn.say(f"no command: {turn.command}")

    return agent


WEB = v1.AvailableCommand.of("web", "Search the web", "what for")
TEST = v1.AvailableCommand.of("test", "Run the tests")


@pytest.mark.requirement("commands.after-session-exists")
async def test_commands_are_advertised_behind_the_answer_that_tells_of_the_session(scripted, agent):
    async with scripted(agent) as client:
        opening = client.call("session/new", {"cwd": "/project", "mcpServers": []})
        session = (await client.expect_result(opening))["sessionId"]
        told = (await client.expect("session/update"))["params"]
        assert told["sessionId"] == session
        assert [it["name"] for it in told["update"]["availableCommands"]] == ["web", "test"]
        assert told["update"]["availableCommands"][0]["input"] == {"hint": "what for"}


@pytest.mark.requirement("commands.recognized")
@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        (["/web acp  protocol "], "searching 'acp  protocol' with 0 more"),
        (["/web\nacp"], "searching 'acp' with 0 more"),
        (["/web"], "searching '' with 0 more"),
        (["/web acp", v1.ResourceLink("a", "file:///a")], "searching 'acp' with 1 more"),
        ([v1.ResourceLink("a", "file:///a"), "/web acp"], "searching 'acp' with 1 more"),
        (["/test"], "testing, test ''"),
        (["/test all of it"], "testing, test 'all of it'"),
        (["/webbing"], "no command: None"),
        (["/"], "no command: None"),
        (["say /web"], "no command: None"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, list) else "",
)
async def test_a_prompt_calls(serve, agent, prompt, answer):
    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), *prompt)
        assert editor.text == answer


async def test_an_agent_may_have_commands_alone(serve):
    agent = Agent("commands")
    agent.command("test", "Run the tests")(lambda _: None)
    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "hello")
        assert editor.text == "I know these commands: /test"


async def test_a_session_s_commands_can_change(serve, agent):
    async def deploy(turn):
        await turn.say("deploying")
        await turn.session.commands.remove("web")

    @agent.on_session
    async def opened(session):
        if session.cwd.name == "deployable":
            await session.commands.offer("deploy", "Deploy it", deploy)

    async with serve(agent) as editor:
        plain, deployable = await editor.open("/plain"), await editor.open("/deployable")
        await editor.prompt(plain, "/deploy")
        assert editor.text == "no command: None"
        await editor.prompt(deployable, "/deploy")
        deploying = v1.AvailableCommand.of("deploy", "Deploy it")
        assert [update.available_commands for update in editor.of(v1.AvailableCommandsUpdate)] == [
            [WEB, TEST],
            [WEB, TEST, deploying],
            [TEST, deploying],
        ]


@pytest.mark.parametrize("name", ["", "/web", "two words"])
def test_a_command_s_name_is_one_word_without_its_slash(name):
    with pytest.raises(ValueError, match="one word"):
        Agent("commands").command(name, "wrong")(lambda _: None)


async def test_a_client_that_leaves_before_it_hears_of_the_commands_is_no_error(scripted, caplog):
    agent = Agent("commanded")
    agent.on_prompt(lambda _: None)
    agent.command("go", "Go on")(lambda _: None)
    async with scripted(agent) as client:
        client.call("session/new", {"cwd": "/", "mcpServers": []})
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_the_commands_come_before_anything_of_a_prompt_that_is_sent_at_once():
    agent = Agent("quick")
    agent.command("review", "Review")(lambda _: None)

    @agent.on_prompt
    async def answer(turn):
        await turn.say("hello")

    folder = {"cwd": "/project", "mcpServers": []}
    ours, theirs = memory_pair()
    serving = asyncio.create_task(agent.serve(theirs))
    async with ScriptedPeer(ours) as client:
        await client.request("initialize", {"protocolVersion": 1})
        session_id = (await client.request("session/new", folder))["sessionId"]
        await client.expect("session/update")
        await client.request("session/close", {"sessionId": session_id})
        client.call("session/resume", {"sessionId": session_id, **folder})
        client.call("session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": "Hi"}]})
        await client.receive()  # the session is open
        kinds = [(await client.expect("session/update"))["params"]["update"]["sessionUpdate"] for _ in range(2)]
        assert kinds == ["available_commands_update", "agent_message_chunk"]
    await serving
