"""System prompts of a client: what an author reads, and what is refused."""

import pytest

import accord
from accord import v1
from accord.agent.session import ClientSystemPrompt
from tests.agent import feature_agents

OWN = "You are a librarian."
BRIEF = {"mode": "append", "content": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Rhyme."}]}


async def said(session):
    return (await session.prompt("who?")).text


async def test_a_system_prompt_reaches_the_author_however_the_session_is_opened(reach):
    async with reach("prompted") as remote:
        assert remote.capabilities.sessions.system_prompt
        assert remote.capabilities.sessions.system_prompt_override
        assert await said(await remote.new_session("/")) == OWN
        session = await remote.new_session("/", system_prompt="Be brief.")
        assert await said(session) == f"{OWN}\n\nBe brief."
        assert await said(await session.fork()) == f"{OWN}\n\nBe brief."
        poet = v1.SystemPrompt("override", [v1.TextContent("You are a poet.")])
        assert await said(await session.fork(system_prompt=poet)) == "You are a poet."
        await session.close()
        loaded = await remote.load(session.id, "/", system_prompt="Rhyme.")
        assert await said(loaded) == f"{OWN}\n\nRhyme."
        await loaded.close()
        # What the client did not say again does not count any more.
        resumed = await remote.resume(session.id, "/")
        assert await said(resumed) == OWN
        await resumed.close()
        assert await said(await remote.resume(session.id, "/", system_prompt=poet)) == "You are a poet."


async def test_several_texts_of_a_system_prompt_are_paragraphs(scripted):
    async with scripted(feature_agents.prompted()) as client:
        opened = await client.request("session/new", {"cwd": "/", "mcpServers": [], "systemPrompt": BRIEF})
        asked = client.call(
            "session/prompt", {"sessionId": opened["sessionId"], "prompt": [{"type": "text", "text": "who?"}]}
        )
        update = await client.expect("session/update")
        assert update["params"]["update"]["content"]["text"] == f"{OWN}\n\nBe brief.\n\nRhyme."
        await client.expect_result(asked)


WAYS = {
    "session/new": {"cwd": "/", "mcpServers": []},
    "session/load": {"cwd": "/", "mcpServers": []},
    "session/resume": {"cwd": "/"},
    "session/fork": {"cwd": "/"},
}
WRONG = {
    "a mode that nobody knows": {"mode": "prepend", "content": [{"type": "text", "text": "a"}]},
    "no content": {"mode": "append", "content": []},
    "an empty text": {"mode": "append", "content": [{"type": "text", "text": ""}]},
    "an image": {"mode": "append", "content": [{"type": "image", "data": "", "mimeType": "image/png"}]},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_a_system_prompt_that_the_agent_cannot_use_is_refused_and_opens_nothing(scripted, wrong):
    async with scripted(feature_agents.prompted()) as client:
        opened = await client.request("session/new", {"cwd": "/", "mcpServers": []})
        for method, params in WAYS.items():
            asked = params | {"systemPrompt": wrong} | ({} if method == "session/new" else opened)
            error = await client.expect_error(client.call(method, asked))
            assert error["code"] == -32602
            assert error["data"]["path"].startswith("$.systemPrompt")
        listed = await client.request("session/list", {})
        assert len(listed["sessions"]) == 1
        # A refused `load` has not closed the session that is open.
        asked = {"sessionId": opened["sessionId"], "prompt": [{"type": "text", "text": "who?"}]}
        call = client.call("session/prompt", asked)
        await client.expect("session/update")
        await client.expect_result(call)


@pytest.mark.parametrize(
    ("modes", "declared", "refused"),
    [
        ([], None, ["append", "override"]),
        (["append"], {}, ["override"]),
        (["append", "override"], {"mode": {"override": {}}}, []),
    ],
)
async def test_an_agent_declares_the_modes_that_it_takes_and_refuses_the_others(scripted, modes, declared, refused):
    agent = accord.Agent("prompted", system_prompts=modes)
    agent.on_prompt(lambda _: None)
    async with scripted(agent, initialize=False) as client:
        answer = await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        assert answer["agentCapabilities"]["sessionCapabilities"].get("systemPrompt") == declared
        for mode in ("append", "override"):
            prompt = {"mode": mode, "content": [{"type": "text", "text": "a"}]}
            call = client.call("session/new", {"cwd": "/", "mcpServers": [], "systemPrompt": prompt})
            if mode in refused:
                assert (await client.expect_error(call))["code"] == -32602
            else:
                await client.expect_result(call)


@pytest.mark.parametrize("modes", [["override"], ["prepend"], ["append", "prepend"], "append"])
def test_modes_that_cannot_be_declared_are_refused_where_the_agent_is_made(modes):
    with pytest.raises(ValueError, match=r"Agent\(system_prompts=\.\.\.\) must be empty"):
        accord.Agent("prompted", system_prompts=modes)


def test_a_system_prompt_is_applied_to_an_empty_one():
    assert ClientSystemPrompt("append", "Be brief.").applied_to("") == "Be brief."
