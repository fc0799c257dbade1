"""Clients of the built-in agent: one that lends real files and processes, and one that lends nothing."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accord import Handlers, Peer, RequestError, memory_pair, v1
from accord_tools.demo import demo_agent
from tests.waiting import DEADLINE

"""Seconds until a wait for something that should happen is a failure; generous, as machines are shared."""

EVERYTHING = v1.ClientCapabilities(
    fs=v1.FileSystemCapabilities(read_text_file=True, write_text_file=True),
    terminal=True,
    elicitation=v1.ElicitationCapabilities(v1.ElicitationFormCapabilities(), v1.ElicitationUrlCapabilities()),
    session=v1.ClientSessionCapabilities(
        config_options=v1.SessionConfigOptionsCapabilities(v1.BooleanConfigOptionCapabilities()),
        notices=v1.NoticeCapabilities(),
        compaction=v1.CompactionCapabilities(),
    ),
    subagents=v1.SubagentCapabilities(),
    plan=v1.PlanCapabilities(),
)


class Client:
    """What a client lends, and what it is asked."""

    def __init__(self):
        self.allows = True
        self.elicitation = v1.ElicitationDeclineAction()
        self.asked = []
        self.terminals = {}

    def handlers(self):
        handlers = Handlers()
        for handle in (self.read, self.write, self.permit, self.elicit, self.done, *self.terminal_methods()):
            handlers.on(next(iter(handle.__annotations__.values())))(handle)
        return handlers

    def read(self, request: v1.ReadTextFileRequest):
        path = Path(request.path)
        if not path.exists():
            raise RequestError.not_found("no such file")
        return v1.ReadTextFileResponse(path.read_text())

    def write(self, request: v1.WriteTextFileRequest):
        Path(request.path).write_text(request.content)

    def permit(self, request: v1.RequestPermissionRequest):
        self.asked.append(request)
        wanted = "allow_once" if self.allows else "reject_once"
        option = next(option for option in request.options if option.kind == wanted)
        return v1.RequestPermissionResponse(v1.SelectedPermissionOutcome(option.option_id))

    def elicit(self, request: v1.CreateElicitationRequest):
        self.asked.append(request)
        return self.elicitation

    def done(self, notification: v1.CompleteElicitationNotification):
        self.asked.append(notification)

    # Terminals

    def terminal_methods(self):
        return self.create, self.output, self.wait, self.kill, self.release

    async def create(self, request: v1.CreateTerminalRequest):
        process = await asyncio.create_subprocess_exec(
            request.command, *request.args, cwd=request.cwd, stdout=asyncio.subprocess.PIPE
        )
        terminal_id = v1.TerminalId(f"terminal-{len(self.terminals)}")
        self.terminals[terminal_id] = [process, b""]
        return v1.CreateTerminalResponse(terminal_id)

    def output(self, request: v1.TerminalOutputRequest):
        process, output = self.terminals[request.terminal_id]
        return v1.TerminalOutputResponse(output.decode(), False, v1.TerminalExitStatus(process.returncode))

    async def wait(self, request: v1.WaitForTerminalExitRequest):
        terminal = self.terminals[request.terminal_id]
        terminal[1], _ = await terminal[0].communicate()
        return v1.WaitForTerminalExitResponse(terminal[0].returncode)

    def kill(self, request: v1.KillTerminalRequest):
        self.terminals[request.terminal_id][0].kill()

    async def release(self, request: v1.ReleaseTerminalRequest):
        process, _ = self.terminals.pop(request.terminal_id)
        if process.returncode is None:
            process.kill()
        await process.wait()


class Answer:
    """What came back for one prompt."""

    def __init__(self, stop_reason, updates):
        self.stop_reason = stop_reason
        self.updates = updates

    def of(self, cls):
        return [update for update in self.updates if isinstance(update, cls)]

    @property
    def blocks(self):
        return [update.content for update in self.of(v1.AgentMessageChunk)]

    @property
    def text(self):
        return "".join(block.text for block in self.blocks if isinstance(block, v1.TextContent))

    @property
    def tool(self):
        """How the one tool call ended: the call, with all that changed about it."""
        [call] = self.of(v1.ToolCall)
        changes = [update for update in self.of(v1.ToolCallProgress) if update.tool_call_id == call.tool_call_id]
        contents = [change.content for change in changes if change.content is not None]
        return call, changes[-1].status, contents[-1] if contents else []


class Visit:
    """A session with the built-in agent."""

    def __init__(self, peer, client, session, updates, heard):
        self.peer = peer
        self.client = client
        self.session = session
        self.updates = updates
        self._heard = heard

    def sending(self, *content):
        request = v1.PromptRequest.of(self.session.session_id, *content)
        return asyncio.create_task(self.peer.request(request, timeout=DEADLINE))

    async def say(self, *content):
        before = len(self.updates)
        stop_reason = (await self.sending(*content)).stop_reason
        return Answer(stop_reason, self.updates[before:])

    async def heard(self, wanted):
        async with asyncio.timeout(DEADLINE):
            while not any(isinstance(update, wanted) for update in self.updates):
                self._heard.clear()
                await self._heard.wait()

    async def cancel(self):
        await self.peer.notify(v1.CancelNotification(self.session.session_id))


@pytest.fixture
def visit(tmp_path):
    """`async with visit() as visit`: in a session with the built-in agent; `lends=False`: with the smallest client."""

    @asynccontextmanager
    async def begin(*, lends=True, pace=0, servers=(), **options):
        here, there = memory_pair()
        serving = asyncio.create_task(demo_agent(pace=pace, **options).serve(there))
        client, updates, heard = Client(), [], asyncio.Event()
        handlers = client.handlers() if lends else Handlers()

        @handlers.on(v1.SessionNotification)
        def hear(notification):
            updates.append(notification.update)
            heard.set()

        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        try:
            async with Peer(here, handlers, role="client") as peer:
                declared = EVERYTHING if lends else v1.ClientCapabilities()
                await peer.initialize(v1.InitializeRequest(1, declared), timeout=DEADLINE)
                session = await peer.request(v1.NewSessionRequest(str(folder), list(servers)), timeout=DEADLINE)
                visit = Visit(peer, client, session, updates, heard)
                visit.folder = folder
                await visit.heard(v1.AvailableCommandsUpdate)
                yield visit
        finally:
            await asyncio.wait_for(serving, DEADLINE)

    return begin
