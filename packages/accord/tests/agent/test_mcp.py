"""`session.mcp`: the MCP servers of a session, as its agent uses them and as the client sees it."""

import sys
from pathlib import Path

import pytest

import accord
from accord import Agent, Handlers, v1

OLDER = v1.McpServerStdio(
    "older", sys.executable, [str(Path(__file__).parents[1] / "mcp_servers" / "older_server.py")], []
)
OFFERING = v1.McpServerStdio(
    "offering", sys.executable, [str(Path(__file__).parents[1] / "mcp_servers" / "offering_server.py")], []
)
MISSING = v1.McpServerStdio("missing", "/no/such/program", [], [])


@pytest.fixture
def caller():
    """An agent that calls the tool that it is told, asking first if the prompt ends with a question mark."""
    agent = Agent("caller")

    @agent.on_prompt
    async def call(turn):
        tool = turn.text.rstrip("?")
        try:
            result = await turn.session.mcp.call(turn, tool, {}, ask=turn.text.endswith("?"))
        except accord.McpServerError as error:
            await turn.say(error.problem)
        else:
            await turn.say(result.text)

    return agent


async def opened(editor, *servers):
    request = v1.NewSessionRequest(str(Path.cwd()), list(servers))
    return (await editor.request(request, timeout=30)).session_id


async def test_a_tool_is_called_as_a_tool_call_with_its_content(serve, caller):
    async with serve(caller) as editor:
        await editor.prompt(await opened(editor, OLDER), "same")
        [call] = editor.of(v1.ToolCall)
        assert (call.title, call.name, call.raw_input) == ("same", "older/same", {})
        changes = editor.of(v1.ToolCallProgress)
        assert [v1.Content.of('"the same"')] in [change.content for change in changes]
        assert changes[-1].status == "completed"
        assert editor.text == '"the same"'


async def test_how_far_a_tool_is_shows_in_the_title_of_its_call(serve, caller):
    async with serve(caller) as editor:
        await editor.prompt(await opened(editor, OFFERING), "paint")
        titles = [change.title for change in editor.of(v1.ToolCallProgress) if change.title]
        # Titles that follow each other quickly are sent together, so that the first may be left out.
        assert titles[-1] == "paint"
        assert set(titles[:-1]) <= {"paint: 50%", "paint: drying"}
        assert editor.text == "painted"


@pytest.mark.requirement("mcp.untyped-is-stdio")
async def test_a_server_without_a_type_is_started_as_a_process(serve, caller):
    server = {"name": "older", "command": OLDER.command, "args": OLDER.args, "env": []}
    async with serve(caller) as editor:
        opened = await editor.request_raw("session/new", {"cwd": str(Path.cwd()), "mcpServers": [server]})
        await editor.prompt(opened["sessionId"], "same")
        assert editor.text == '"the same"'


async def test_with_ask_the_user_decides(serve, caller):
    handlers = Handlers()

    @handlers.on(v1.RequestPermissionRequest)
    def refuse(request):
        option = next(option for option in request.options if option.kind == "reject_once")
        return v1.RequestPermissionResponse(v1.SelectedPermissionOutcome(option.option_id))

    async with serve(caller, handlers) as editor:
        await editor.prompt(await opened(editor, OLDER), "same?")
        assert editor.text == "The user does not allow this."
        assert editor.of(v1.ToolCallProgress)[-1].status == "failed"


async def test_a_missing_server_is_told_as_a_notice_where_the_client_shows_them(serve, caller):
    shows_notices = v1.ClientCapabilities(session=v1.ClientSessionCapabilities(notices=v1.NoticeCapabilities()))
    async with serve(caller, declare=shows_notices) as editor:
        await editor.prompt(await opened(editor, MISSING, OLDER), "same")
        [notice] = editor.of(v1.Notice)
        assert (notice.severity, notice.title) == ("warning", "MCP server missing is missing")
        assert "No such file" in notice.description
        assert editor.text == '"the same"'


async def test_a_missing_server_is_told_as_a_failed_tool_call_where_the_client_shows_no_notices(serve, caller):
    async with serve(caller) as editor:
        await editor.prompt(await opened(editor, MISSING), "nothing")
        [told] = editor.of(v1.ToolCall)
        assert (told.title, told.status) == ("Connect to the MCP server missing", "failed")
        assert editor.text.startswith("there is no tool nothing")


async def test_a_failure_between_turns_is_told_in_the_next_one(serve, caller):
    failed = []

    @caller.on_session
    async def begin(session):
        failed.extend(await session.mcp.failures())

    async with serve(caller) as editor:
        session = await opened(editor, MISSING)
        assert [failure.server for failure in failed] == ["missing"]
        assert editor.of(v1.ToolCall) == []
        await editor.prompt(session, "nothing")
        assert [call.title for call in editor.of(v1.ToolCall)] == ["Connect to the MCP server missing"]


async def test_the_servers_of_a_session_end_with_it(serve, caller):
    sessions = []

    @caller.on_session
    async def begin(session):
        sessions.append(session)

    async with serve(caller) as editor:
        session = await opened(editor, OLDER)
        await editor.prompt(session, "same")
        await editor.request(v1.CloseSessionRequest(session), timeout=30)
        with pytest.raises(accord.McpServerError, match="the session has ended"):
            await sessions[0].mcp._servers[0].offered("tools")


async def test_an_agent_that_does_not_look_at_them_starts_no_servers(serve):
    agent, sessions = Agent("indifferent"), []
    agent.on_prompt(lambda _: None)

    @agent.on_session
    async def begin(session):
        sessions.append(session)

    async with serve(agent) as editor:
        await editor.prompt(await opened(editor, OLDER), "hello")
        assert sessions[0].mcp._servers[0]._held is None


async def test_an_agent_declares_the_transports_that_are_installed(serve, caller, without_mcp):
    async with serve(caller) as editor:
        assert editor.agent.agent_capabilities.mcp_capabilities == v1.McpCapabilities(http=True, sse=True, acp=True)
    without_mcp()
    async with serve(caller) as editor:
        assert editor.agent.agent_capabilities.mcp_capabilities == v1.McpCapabilities()
