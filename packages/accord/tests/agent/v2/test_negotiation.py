"""The version of a connection: which one a client gets, and what is refused."""

from __future__ import annotations

import pytest

from accord import Agent, RequestError, v1, v2

INFO = {"name": "editor", "version": "1.0"}


def echo(**options):
    agent = Agent("echo", **options)

    @agent.on_prompt
    async def say_it_again(turn):
        await turn.say(turn.text)

    return agent


def asking(version, **members):
    return {"protocolVersion": version, "info": INFO, **members}


@pytest.mark.parametrize(
    ("served", "asked", "gets"),
    [
        ((1, 2), 1, 1),
        ((1, 2), 2, 2),
        ((1, 2), 3, 2),
        ((1, 2), 65535, 2),
        ((1,), 0, 1),
        ((1,), 1, 1),
        ((1,), 2, 1),
        ((1,), 65535, 1),
        ((2,), 2, 2),
        ((2,), 3, 2),
    ],
)
async def test_a_client_gets_the_highest_version_at_or_below_the_one_it_asks_for(speak, served, asked, gets):
    async with speak(echo(versions=served), hello=False) as client:
        answer = await client.request("initialize", asking(asked))
        assert answer["protocolVersion"] == gets
        assert ("info" in answer, "agentInfo" in answer) == (gets == 2, gets == 1)
        assert ("capabilities" in answer, "agentCapabilities" in answer) == (gets == 2, gets == 1)


@pytest.mark.parametrize(("served", "asked"), [((1, 2), 0), ((2,), 0), ((2,), 1)])
async def test_a_version_below_all_that_are_served_is_refused_and_the_client_may_ask_again(speak, served, asked):
    async with speak(echo(versions=served), hello=False) as client:
        error = await client.expect_error(client.call("initialize", asking(asked)), -32022)
        assert error["data"] == {"requested": asked, "supported": list(served)}
        assert (await client.request("initialize", asking(2)))["protocolVersion"] == 2


@pytest.mark.parametrize("served", [(1, 2), (1,), (2,)])
@pytest.mark.parametrize(
    "params", [{}, [], "2", asking("2"), asking(-1), asking(65536), asking(1.5), asking(True), asking(None)]
)
async def test_what_is_no_version_is_refused(speak, served, params):
    async with speak(echo(versions=served), hello=False) as client:
        error = (await _answer(client, {"id": 1, "method": "initialize", "params": params}))["error"]
        assert error["code"] in ((-32602,) if isinstance(params, dict) else (-32602, -32600))
        assert (await client.request("initialize", asking(2)))["protocolVersion"] == max(served)


async def _answer(client, message):
    client.send({"jsonrpc": "2.0", **message})
    return await client.receive()


@pytest.mark.parametrize("request_id", [None, 1.5])
async def test_an_initialize_with_a_bad_id_is_refused_without_an_id(speak, request_id):
    async with speak(echo(), hello=False) as client:
        answer = await _answer(client, {"id": request_id, "method": "initialize", "params": asking(2)})
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)


async def test_an_array_gets_one_error(speak):
    async with speak(echo()) as client:
        client.send_raw(b'[{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}]')
        await client.expect_error(None, -32600)
        await client.expect_silence()


async def test_version_2_needs_a_name_where_it_is_asked_for_by_its_number(speak):
    async with speak(echo(), hello=False) as client:
        request = client.call("initialize", {"protocolVersion": 2, "clientInfo": INFO, "clientCapabilities": {}})
        await client.expect_error(request, -32602)


async def test_what_a_newer_client_says_is_read_as_far_as_possible(speak):
    known = []
    agent = Agent("curious")
    agent.on_prompt(lambda turn: known.append(turn.client.info))
    async with speak(agent, hello=False) as client:
        await client.request("initialize", {"protocolVersion": 9, "info": 3, "capabilities": "all", "_meta": []})
        request = client.prompt(await client.new())
        await client.inserted(request)
        await client.state("idle", stopReason="end_turn")
    assert known == [v2.Implementation("unknown", "unknown")]


@pytest.mark.parametrize("members", [{"clientInfo": INFO}, {"info": INFO}])
async def test_an_agent_of_version_1_knows_a_newer_client_by_its_name(speak, members):
    known = []
    agent = Agent("curious", versions=(1,))
    agent.on_session(lambda session: known.append(session.client.info))
    agent.on_prompt(lambda _: None)
    async with speak(agent, hello=False) as client:
        await client.request("initialize", {"protocolVersion": 2, **members})
        await client.request("session/new", {"cwd": "/project", "mcpServers": []})
    assert [info.name for info in known] == ["editor"]


async def test_an_agent_of_version_1_reads_what_a_client_of_version_2_declares(speak):
    seen = []
    agent = Agent("curious", versions=(1,))
    agent.on_prompt(lambda _: None)

    @agent.on_session
    def look(session):
        has = session.client.capabilities.has
        seen.extend(has(path) for path in ("session.notices", "elicitation.form", "auth.terminal", "terminal"))

    capabilities = {"elicitation": {"form": {}}, "auth": {"terminal": {}}}
    async with speak(agent, hello=False) as client:
        await client.request("initialize", asking(2, capabilities=capabilities))
        await client.request("session/new", {"cwd": "/project", "mcpServers": []})
    assert seen == [True, True, True, False]


async def test_a_bilingual_client_lends_its_files_to_an_agent_of_version_1(speak):
    lent = []
    agent = Agent("reader", versions=(1,))
    agent.on_prompt(lambda _: None)
    agent.on_session(lambda session: lent.append(session.client.can_read_files))
    async with speak(agent, hello=False) as client:
        older = {"fs": {"readTextFile": True, "writeTextFile": True}}
        await client.request("initialize", asking(2, capabilities={}, clientCapabilities=older))
        await client.request("session/new", {"cwd": "/project", "mcpServers": []})
    assert lent == [True]


# After the choice


async def test_version_2_may_be_initialized_again_until_another_request_comes(speak):
    async with speak(echo()) as client:
        assert (await client.request("initialize", asking(2)))["protocolVersion"] == 2
        await client.expect_error(client.call("initialize", asking(1)), -32600)
        assert (await client.request("initialize", asking(3)))["protocolVersion"] == 2
        assert "sessionId" in await client.request("session/new", {"cwd": "/project"})
        await client.expect_error(client.call("initialize", asking(2)), -32600)


async def test_a_failed_repetition_leaves_the_connection_as_it_was(speak):
    async with speak(echo()) as client:
        await client.expect_error(client.call("initialize", asking("two")), -32602)
        assert "sessionId" in await client.request("session/new", {"cwd": "/project"})


async def test_version_1_cannot_be_initialized_again(speak):
    async with speak(echo(), hello=False) as client:
        await client.request("initialize", asking(1))
        await client.expect_error(client.call("initialize", asking(2)), -32600)


async def test_a_request_before_initialize_is_refused_and_a_notification_ignored(speak):
    async with speak(echo(), hello=False) as client:
        await client.expect_error(client.call("session/new", {"cwd": "/project"}), -32600)
        client.tell("session/cancel", {"sessionId": "s"})
        assert (await client.request("initialize", asking(2)))["protocolVersion"] == 2


@pytest.mark.parametrize(
    ("version", "method"),
    [
        (1, "auth/login"),
        (1, "tool_call/cancel"),
        (2, "authenticate"),
        (2, "logout"),
        (2, "session/load"),
        (2, "session/set_mode"),
    ],
)
async def test_methods_of_the_other_version_are_unknown(speak, version, method):
    agent = echo()
    agent.login("account", "Account")(lambda: None)
    agent.on_logout(lambda: None)
    async with speak(agent, hello=False) as client:
        await client.request("initialize", asking(version))
        await client.expect_error(client.call(method, {"sessionId": "s"}), -32601)


async def test_an_initialize_that_its_handler_refuses_can_be_tried_in_another_version(speak):
    agent = echo()

    @agent.on(v2.InitializeRequest)
    def refuse(request):
        raise RequestError.invalid_request("not today")

    async with speak(agent, hello=False) as client:
        await client.expect_error(client.call("initialize", asking(2)), -32600)
        answer = await client.request("initialize", asking(1))
        assert answer["protocolVersion"] == 1
        await client.request("session/new", {"cwd": "/project", "mcpServers": []})


# What authors write


@pytest.mark.parametrize("versions", [(), (3,), (1, 3), ("1",), (True,)])
def test_versions_that_do_not_exist_are_refused(versions):
    with pytest.raises(ValueError, match="versions must be one or more of 1, 2"):
        Agent("odd", versions=versions)


def test_an_agent_of_version_2_cannot_reject_second_prompts():
    with pytest.raises(ValueError, match="needs versions=\\(1,\\)"):
        Agent("picky", prompt_while_working="reject")
    assert Agent("picky", prompt_while_working="reject", versions=(1,)).info.name == "picky"


async def test_an_agent_that_answers_prompts_on_the_low_level_serves_the_version_of_its_handler(speak):
    agent = Agent("plain")

    @agent.on(v1.PromptRequest)
    def answer(request):
        return v1.PromptResponse("end_turn")

    async with speak(agent, hello=False) as client:
        assert (await client.request("initialize", asking(2)))["protocolVersion"] == 1


async def test_a_handler_of_version_1_serves_version_2_where_both_have_the_message(speak):
    agent = echo()

    @agent.on(v1.ListSessionsRequest)
    def nothing(request):
        return v1.ListSessionsResponse([v1.SessionInfo(v1.SessionId("s-1"), "/home", title="Mine")])

    async with speak(agent) as client:
        sessions = (await client.request("session/list", {}))["sessions"]
        assert sessions == [{"sessionId": "s-1", "cwd": "/home", "title": "Mine"}]


async def test_each_version_has_its_own_low_level_handlers(speak):
    agent = echo()

    @agent.on(v1.ListSessionsRequest)
    def first(request):
        return v1.ListSessionsResponse([], meta={"version": 1})

    @agent.on(v2.ListSessionsRequest)
    def second(request):
        return v2.ListSessionsResponse([], meta={"version": 2})

    for version in (1, 2):
        async with speak(agent, hello=False) as client:
            await client.request("initialize", asking(version))
            assert (await client.request("session/list", {}))["_meta"] == {"version": version}
