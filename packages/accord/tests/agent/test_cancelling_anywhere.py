"""A cancel at every moment of a turn that does everything: it is answered, and leaves nothing behind."""

import asyncio
from dataclasses import dataclass

import pytest

from accord import Agent, Handlers, v1
from tests.waiting import DEADLINE

MOMENTS = 90
"""Steps of the event loop after which a turn is cancelled; the turn takes fewer."""


@dataclass
class Choice:
    yes: bool = True


agent = Agent("everything")


@agent.on_prompt
async def everything(turn):
    if turn.text == "again":
        await turn.say("again")
        return
    plan = await turn.plan("Work")
    async with plan.step("Work"):
        turn.start(aside(turn))
        async with turn.tool("Edit", kind="edit") as tool:
            old = await turn.client.read_text_file("a.txt")
            await tool.diff("a.txt", old, "new")
            if (await tool.ask()).allowed:
                await turn.client.write_text_file("a.txt", "new")
        async with turn.tool("Run", kind="execute") as tool, turn.client.terminal("make") as terminal:
            await tool.terminal(terminal)
            await terminal.wait()
        await turn.elicit("Sure?", Choice)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(turn.client.run("one"))
            tasks.create_task(turn.client.run("two", timeout=DEADLINE))
    await turn.say("done")


async def aside(turn):
    async with turn.tool("Look aside") as tool:
        for _ in range(5):
            await tool.text("x" * 100)
            await asyncio.sleep(0)


class Lender:
    """A client that lends everything, and answers a few steps later."""

    def __init__(self):
        self.handlers = Handlers()
        self.terminals, self.created, self.changed = set(), 0, asyncio.Event()
        answers = {
            v1.ReadTextFileRequest: lambda _: v1.ReadTextFileResponse("old"),
            v1.WriteTextFileRequest: lambda _: v1.WriteTextFileResponse(),
            v1.RequestPermissionRequest: lambda it: v1.RequestPermissionResponse.selected(it.options[0]),
            v1.CreateTerminalRequest: self.create,
            v1.WaitForTerminalExitRequest: lambda _: v1.WaitForTerminalExitResponse(exit_code=0),
            v1.TerminalOutputRequest: lambda _: v1.TerminalOutputResponse("", truncated=False),
            v1.KillTerminalRequest: lambda _: v1.KillTerminalResponse(),
            v1.ReleaseTerminalRequest: self.release,
            v1.CreateElicitationRequest: lambda _: v1.ElicitationAcceptAction({"yes": True}),
        }
        for message, answer in answers.items():
            self.handlers.on(message)(self.later(answer))

    def later(self, answer):
        async def handle(request):
            for _ in range(2):
                await asyncio.sleep(0)
            return answer(request)

        return handle

    def create(self, _):
        self.created += 1
        terminal = v1.TerminalId(f"t{self.created}")
        self.terminals.add(terminal)
        return v1.CreateTerminalResponse(terminal)

    def release(self, request):
        self.terminals.remove(request.terminal_id)
        self.changed.set()
        return v1.ReleaseTerminalResponse()

    async def all_released(self):
        async with asyncio.timeout(DEADLINE):
            while self.terminals:
                self.changed.clear()
                await self.changed.wait()


DECLARE = v1.ClientCapabilities(
    v1.FileSystemCapabilities(read_text_file=True, write_text_file=True),
    terminal=True,
    elicitation=v1.ElicitationCapabilities(v1.ElicitationFormCapabilities()),
)


def unfinished(updates):
    """Tool calls that were announced and never said to have ended."""
    status = {}
    for update in updates:
        if isinstance(update, v1.ToolCall | v1.ToolCallProgress):
            status[update.tool_call_id] = update.status or status[update.tool_call_id]
    return [tool for tool, last in status.items() if last not in ("completed", "failed")]


@pytest.mark.requirement(
    "prompt.cancel.answers-cancelled", "prompt.cancel.errors-hidden", "tool.end-reported", "terminal.released"
)
async def test_whenever_a_turn_is_cancelled_it_is_answered_and_leaves_nothing_behind(serve):
    lender, reasons = Lender(), []
    async with serve(agent, lender.handlers, declare=DECLARE) as editor:
        session = await editor.open()
        for moment in range(1, MOMENTS):
            asking = asyncio.create_task(editor.prompt(session, "go"))
            for _ in range(moment):
                await asyncio.sleep(0)
            await editor.cancel(session)
            reasons.append((await asyncio.wait_for(asking, DEADLINE)).stop_reason)
            assert unfinished(editor.updates) == []
            assert (await editor.prompt(session, "again")).stop_reason == "end_turn"
            await lender.all_released()
    assert reasons[0] == "cancelled"
    assert reasons[-1] == "end_turn", "the last moments come after the turn"
    assert set(reasons) == {"cancelled", "end_turn"}


async def test_whenever_the_link_ends_the_agent_does(serve):
    for moment in range(0, MOMENTS, 7):
        lender = Lender()
        async with serve(agent, lender.handlers, declare=DECLARE) as editor:
            asking = asyncio.create_task(editor.prompt(await editor.open(), "go"))
            for _ in range(moment):
                await asyncio.sleep(0)
            await editor.close()
            await asyncio.wait([asking])
            asking.exception()
