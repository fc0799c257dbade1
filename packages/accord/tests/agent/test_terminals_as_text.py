"""`Agent(local=True)` for a client without terminals: it sees the output of the commands that the agent runs."""

import sys

import pytest

from accord import Agent, CapabilityMissing, Handlers, v1
from accord.schema import codec
from tests.waiting import eventually

SAYS_HELLO = (sys.executable, ["-c", "print('hello from here')"])
WAITS_FOR_A_FILE = """
import pathlib, sys, time
print('started', flush=True)
while not pathlib.Path('go').exists():
    time.sleep(0.01)
print('ended', flush=True)
"""


def agent_with(work):
    agent = Agent("local", local=True)
    agent.on_prompt(work)
    return agent


def shown(editor):
    """The text of the tool call, as the client has it after each update of the content."""
    updates = [it.content for it in editor.of(v1.ToolCallProgress) if it.content]
    return ["".join(part.content.text for part in content) for content in updates]


def assert_no_terminal_id(editor):
    assert b'"terminalId"' not in b"".join(codec.encode(update) for update in editor.updates)


async def test_a_client_without_terminals_gets_the_output_as_text(serve, tmp_path):
    async def work(turn):
        async with turn.tool("Greet", kind="execute") as tool:
            await tool.text("before")
            async with turn.client.terminal(*SAYS_HELLO) as terminal:
                await tool.terminal(terminal)
                await terminal.wait()
            await tool.text("after")

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(str(tmp_path)), "go")
        assert shown(editor)[-1] == "before```\nhello from here\n```after"
        assert_no_terminal_id(editor)


async def test_the_text_grows_while_the_command_runs(serve, tmp_path):
    async def work(turn):
        command = (sys.executable, ["-c", WAITS_FOR_A_FILE])
        async with turn.tool("Wait", kind="execute") as tool, turn.client.terminal(*command) as terminal:
            await tool.terminal(terminal)
            await eventually(lambda: any("started" in text for text in shown(editor)))
            assert not any("ended" in text for text in shown(editor))
            (tmp_path / "go").touch()
            await terminal.wait()

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(str(tmp_path)), "go")
        assert shown(editor)[-1] == "```\nstarted\nended\n```"
        assert_no_terminal_id(editor)


async def test_a_terminal_given_by_its_id_or_as_content_is_text_too(serve, tmp_path):
    async def work(turn):
        async with turn.client.terminal(*SAYS_HELLO) as terminal:
            await terminal.wait()
            async with turn.tool("By id") as tool:
                await tool.terminal(terminal.id)
            async with turn.tool("As content") as tool:
                await tool.content(v1.Terminal(terminal.id))

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(str(tmp_path)), "go")
        assert shown(editor) == ["```\nhello from here\n```"] * 2
        assert_no_terminal_id(editor)


async def test_a_question_about_a_tool_call_has_the_text_and_no_terminal_id(serve, tmp_path):
    asked, handlers = [], Handlers()

    @handlers.on(v1.RequestPermissionRequest)
    def permit(request):
        asked.append(request)
        return v1.RequestPermissionResponse(v1.SelectedPermissionOutcome(request.options[0].option_id))

    async def work(turn):
        async with turn.tool("Greet") as tool, turn.client.terminal(*SAYS_HELLO) as terminal:
            await terminal.wait()
            await tool.terminal(terminal)
            await tool.ask()

    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(str(tmp_path)), "go")
        assert [part.content.text for part in asked[0].tool_call.content] == ["```\nhello from here\n```"]


async def test_output_with_backticks_stays_inside_of_its_block(serve, tmp_path):
    async def work(turn):
        async with turn.tool("Print") as tool, turn.client.terminal("printf", ["a\\n```\\nb"]) as terminal:
            await terminal.wait()
            await tool.terminal(terminal)

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(str(tmp_path)), "go")
        assert shown(editor)[-1] == "````\na\n```\nb\n````"


async def test_a_terminal_that_neither_side_has_is_refused(serve):
    refused = []
    agent = Agent("without terminals")

    @agent.on_prompt
    async def work(turn):
        async with turn.tool("Show") as tool:
            with pytest.raises(CapabilityMissing, match="showing a terminal"):
                await tool.terminal(v1.TerminalId("t1"))
            refused.append(True)

    async with serve(agent) as editor:
        await editor.prompt(await editor.open(), "go")
        assert refused
