"""What a session's MCP servers offer, and what comes of using it.

The servers are real: one with the official package, and one by hand that is as servers were before 2026.
"""

import asyncio
import base64
import json
import sys
from pathlib import Path

import pytest

import accord
from accord import v1
from accord.installation import install_command
from accord.mcp import mcp_capabilities
from tests.waiting import eventually

OLDER = Path(__file__).with_name("older_server.py")


@pytest.mark.requirement("mcp.all-connected", "mcp.http-supported", "mcp.stdio-supported")
async def test_every_way_to_a_server_offers_the_same(session_with, as_process, over_http):
    servers = [
        as_process("stdio"),
        v1.McpServerHttp("http", over_http("http"), []),
        v1.McpServerSse("sse", over_http("sse"), []),
    ]
    async with session_with(*servers) as session:
        tools = await session.servers.tools()
        offered = {name: {tool.name for tool in tools if tool.server == name} for name in ("stdio", "http", "sse")}
        assert offered["stdio"] == offered["http"] == offered["sse"] >= {"add", "fail", "ask"}
        for name in offered:
            assert (await session.run(f"{name}/add", left=2, right=3)).structured == {"result": 5}
        assert session.failures == []


async def test_a_tool_says_what_it_takes_and_what_kind_it_is(session_with, as_process):
    async with session_with(as_process("offering")) as session:
        add = await session.servers.tool("add")
        assert (add.qualified_name, add.title, add.kind) == ("offering/add", "Add two numbers", "read")
        assert add.input_schema["required"] == ["left", "right"]
        assert (await session.servers.tool("offering/fail")).kind == "other"


async def test_content_is_passed_through(session_with, as_process):
    async with session_with(as_process("offering")) as session:
        assert (await session.run("add", left=1, right=1)).content == [v1.TextContent("2")]
        [picture] = (await session.run("picture")).content
        assert isinstance(picture, v1.ImageContent)
        assert base64.b64decode(picture.data).startswith(b"\x89PNG")


async def test_a_tool_that_fails_says_so_in_its_result(session_with, as_process):
    async with session_with(as_process("offering")) as session:
        result = await session.run("fail")
        assert result.failed
        assert "fail" in result.text


async def test_resources_and_prompts_are_read_and_filled_in(session_with, as_process):
    async with session_with(as_process("offering")) as session:
        [today] = await session.servers.resources()
        assert today.link == v1.ResourceLink("today", "note://today", "Today", "", "text/plain")
        [read] = await session.servers.read(today)
        assert read.resource == v1.TextResourceContents("buy paint", "note://today", "text/plain")
        [greet] = await session.servers.prompts()
        assert (greet.title, greet.arguments) == ("Greet somebody", {"name": True})
        [message] = await session.servers.prompt(greet, {"name": "Ada"})
        assert (message.role, message.content) == ("user", v1.TextContent("Say hello to Ada."))


@pytest.mark.requirement("mcp.launched-as-told")
async def test_a_process_runs_in_the_sessions_folder_with_its_variables(session_with, as_process, tmp_path):
    async with session_with(as_process("offering", env={"OFFERING": "fresh"})) as session:
        assert (await session.run("where")).text == f"{tmp_path.resolve()} fresh"


@pytest.mark.requirement("mcp.headers-sent")
@pytest.mark.parametrize("kind", [v1.McpServerHttp, v1.McpServerSse])
async def test_a_remote_server_gets_the_headers_that_the_client_named(session_with, kind):
    heads = []

    async def refuse(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        headers = [v1.HttpHeader("Authorization", "Bearer abc"), v1.HttpHeader("X-Team", "blue")]
        async with session_with(kind("remote", url, headers)) as session:
            assert await session.servers.tools() == []
    assert heads
    assert all("authorization: bearer abc\r\n" in head and "x-team: blue\r\n" in head for head in heads)


# What changes


@pytest.mark.parametrize(("script", "more"), [("offering_server.py", "plus"), ("older_server.py", "grown")])
async def test_a_list_that_has_changed_is_read_again(session_with, as_process, script, more):
    async with session_with(as_process("server", script)) as session:
        before = {tool.name for tool in await session.servers.tools()}
        await session.run("grow")
        async with asyncio.timeout(30):
            while {tool.name for tool in await session.servers.tools()} != before | {more}:  # noqa: ASYNC110  nothing else tells
                await asyncio.sleep(0.01)


async def test_a_list_that_comes_in_pages_is_whole(session_with, as_process):
    async with session_with(as_process("server", "older_server.py")) as session:
        assert [tool.name for tool in await session.servers.tools()] == [
            "ask",
            "ask for a password",
            "visit",
            "folders",
            "grow",
            "same",
            "wait",
            "die",
        ]


# Asking the user


async def test_what_a_server_wants_to_know_is_asked_of_the_client(session_with, as_process):
    async with session_with(as_process("offering"), answer=v1.ElicitationAcceptAction({"colour": "red"})) as session:
        assert (await session.run("ask")).text == "accept: red"
        [question] = session.questions
        assert isinstance(question, v1.ElicitationFormMode)
        assert (question.message, question.session_id, question.tool_call_id) == ("Which colour?", "s", "call-1")
        assert list(question.requested_schema.properties) == ["colour"]


async def test_an_older_server_asks_in_the_middle_of_a_call(session_with, as_process):
    server = as_process("server", "older_server.py")
    async with session_with(server, answer=v1.ElicitationAcceptAction({"colour": "blue"})) as session:
        assert json.loads((await session.run("ask")).text) == {"action": "accept", "content": {"colour": "blue"}}
        assert session.questions[0].requested_schema.properties["colour"].enum == ["red", "blue"]


async def test_the_user_is_sent_to_a_page_and_the_client_told_when_it_is_done(session_with, as_process):
    server = as_process("server", "older_server.py")
    async with session_with(server, answer=v1.ElicitationAcceptAction()) as session:
        assert json.loads((await session.run("visit")).text)["action"] == "accept"
        await eventually(lambda: len(session.questions) == 2)
        page, done = session.questions
        assert (page.url, page.elicitation_id) == ("https://example.com/", "visit-1")
        assert done == v1.CompleteElicitationNotification(v1.ElicitationId("visit-1"))


async def test_a_server_s_form_that_asks_for_a_secret_is_declined(session_with, as_process):
    server = as_process("server", "older_server.py")
    async with session_with(server, answer=v1.ElicitationAcceptAction({"password": "hidden"})) as session:
        assert json.loads((await session.run("ask for a password")).text)["action"] == "decline"
        assert session.questions == []


@pytest.mark.parametrize("content", [{"colour": "green"}, {"colour": 7}, {}])
async def test_an_answer_that_does_not_fit_a_server_s_form_is_declined(session_with, as_process, content):
    server = as_process("server", "older_server.py")
    async with session_with(server, answer=v1.ElicitationAcceptAction(content)) as session:
        assert json.loads((await session.run("ask")).text)["action"] == "decline"
        assert len(session.questions) == 1


async def test_a_no_of_the_user_reaches_the_server(session_with, as_process):
    async with session_with(as_process("offering"), answer=v1.ElicitationDeclineAction()) as session:
        assert (await session.run("ask")).text == "decline: none"
    async with session_with(as_process("offering"), answer=v1.ElicitationCancelAction()) as session:
        assert (await session.run("ask")).text == "cancel: none"


async def test_a_page_is_declined_where_the_client_shows_only_forms(session_with, as_process):
    only_forms = v1.ElicitationCapabilities(form=v1.ElicitationFormCapabilities())
    async with session_with(as_process("server", "older_server.py"), elicitation=only_forms) as session:
        assert json.loads((await session.run("visit")).text)["action"] == "decline"
        assert session.questions == []


async def test_a_server_learns_the_sessions_folders(session_with, as_process, tmp_path):
    async with session_with(as_process("server", "older_server.py")) as session:
        assert json.loads((await session.run("folders")).text)["roots"] == [{"uri": tmp_path.as_uri()}]


# What goes wrong


async def test_a_server_that_is_not_there_is_told_once_and_the_others_work(session_with, as_process):
    missing = v1.McpServerStdio("missing", "/no/such/program", [], [])
    quits = v1.McpServerStdio("quits", sys.executable, ["-c", "raise SystemExit(4)"], [])
    refuses = v1.McpServerHttp("refuses", "http://127.0.0.1:9/mcp", [])
    async with session_with(missing, as_process("older", "older_server.py"), quits, refuses) as session:
        assert {tool.server for tool in await session.servers.tools()} == {"older"}
        assert (await session.run("same")).text == '"the same"'
        failures = await session.servers.failures()
        assert [failure.server for failure in failures] == ["missing", "quits", "refuses"]
        assert sorted(failure.server for failure in session.failures) == ["missing", "quits", "refuses"]
        assert "No such file" in failures[0].problem


async def test_a_server_that_never_answers_is_given_up(session_with):
    silent = v1.McpServerStdio("silent", sys.executable, ["-c", "import sys; sys.stdin.read()"], [])
    async with session_with(silent, deadline=0.2) as session:
        [failure] = await session.servers.failures()
        assert failure.problem == "did not answer within 0.2 seconds"


async def test_a_server_that_dies_fails_its_call_is_told_once_and_started_anew(session_with, as_process):
    async with session_with(as_process("older", "older_server.py")) as session:
        await session.run("grow")
        assert "older/grown" in [tool.qualified_name for tool in await session.servers.tools()]
        for _ in range(2):
            with pytest.raises(accord.McpServerError, match="the server closed the connection"):
                await session.run("die")
            assert (await session.run("same")).text == '"the same"'
            assert await session.servers.failures() == []
        assert "older/grown" not in [tool.qualified_name for tool in await session.servers.tools()]
        assert [failure.server for failure in session.failures] == ["older", "older"]


async def test_a_server_that_died_is_there_again_for_all_who_ask(session_with, as_process):
    async with session_with(as_process("older", "older_server.py")) as session:
        tool = await session.servers.tool("same")
        with pytest.raises(accord.McpServerError, match="the server closed the connection"):
            await session.servers.run(await session.servers.tool("die"))
        outcomes = await asyncio.gather(*(session.servers.run(tool) for _ in range(5)))
        assert [outcome.text for outcome in outcomes] == ['"the same"'] * 5


async def test_a_server_that_cannot_be_started_anew_is_left_alone_for_a_while(session_with, tmp_path):
    program = tmp_path / "server"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {OLDER}\n")
    program.chmod(0o700)
    async with session_with(v1.McpServerStdio("mortal", str(program), [], [])) as session:
        die, same = await session.servers.tool("die"), await session.servers.tool("same")
        with pytest.raises(accord.McpServerError, match="the server closed the connection"):
            await session.servers.run(die)
        started = tmp_path / "started"
        program.write_text(f"#!/bin/sh\necho once >> {started}\n")
        for _ in range(3):
            with pytest.raises(accord.McpServerError, match="mortal"):
                await session.servers.run(same)
        assert started.read_text() == "once\n"
        assert await session.servers.tools() == []
        assert [failure.server for failure in session.failures] == ["mortal"]


async def test_how_far_a_call_is_can_be_heard(session_with, as_process):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total, message))

    async with session_with(as_process("offering")) as session:
        tool = await session.servers.tool("paint")
        assert (await session.servers.run(tool, on_progress=hear)).text == "painted"
    assert heard == [(1, 2, None), (2, 2, "drying")]


async def test_a_tool_is_found_by_its_servers_name_where_two_have_it(session_with, as_process):
    async with session_with(as_process("one", "older_server.py"), as_process("two", "older_server.py")) as session:
        with pytest.raises(
            accord.McpServerError, match="several servers have a tool 'same'; name one of one/same, two/same"
        ):
            await session.run("same")
        assert (await session.run("two/same")).text == '"the same"'


async def test_a_call_that_is_cancelled_leaves_the_server_at_work_for_others(session_with, as_process):
    async with session_with(as_process("older", "older_server.py")) as session:
        [link] = session.servers._servers
        call = asyncio.create_task(session.run("wait"))
        await eventually(lambda: link._calls)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not link._calls
        assert (await session.run("same")).text == '"the same"'


async def test_closing_lets_those_go_that_are_there_and_those_that_still_connect(session_with, as_process):
    silent = v1.McpServerStdio("silent", sys.executable, ["-c", "import sys; sys.stdin.read()"], [])
    async with session_with(as_process("older", "older_server.py"), silent) as session:
        there, still_connecting = session.servers._servers
        assert await there.offered("tools")
    assert there._held._owner.done()
    assert still_connecting._held._owner.done()
    assert session.failures == []
    with pytest.raises(accord.McpServerError, match="the session has ended"):
        await there.offered("tools")


def test_what_an_agent_can_declare_follows_from_what_is_installed(without_mcp):
    assert mcp_capabilities() == v1.McpCapabilities(http=True, sse=True, acp=True)
    without_mcp()
    assert mcp_capabilities() == v1.McpCapabilities()


async def test_without_the_package_a_server_is_told_as_failed_with_what_to_install(
    session_with, as_process, without_mcp
):
    without_mcp()
    async with session_with(as_process("offering")) as session:
        [failure] = await session.servers.failures()
        assert install_command("mcp") in failure.problem
