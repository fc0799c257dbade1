"""What the client lends: files and terminals, refused clearly where it lends none."""

import asyncio

import pytest

from accord import Agent, CapabilityMissing, Handlers, PeerError, v1


def agent_with(work):
    agent = Agent("works")
    agent.on_prompt(work)
    return agent


FILES = v1.ClientCapabilities(v1.FileSystemCapabilities(read_text_file=True, write_text_file=True))
TERMINALS = v1.ClientCapabilities(terminal=True)


async def test_files_are_read_and_written_through_the_client(serve):
    asked, handlers = [], Handlers()

    @handlers.on(v1.ReadTextFileRequest)
    def read(request):
        asked.append(request)
        return v1.ReadTextFileResponse("text")

    handlers.on(v1.WriteTextFileRequest)(asked.append)

    async def work(turn):
        text = await turn.client.read_text_file("a.txt", line=2, limit=3)
        await turn.client.write_text_file(turn.cwd / "b.txt", text.upper())
        assert turn.client.can_read_files
        assert turn.client.can_write_files
        assert not turn.client.can_run_commands

    async with serve(agent_with(work), handlers, declare=FILES) as editor:
        session = await editor.open()
        await editor.prompt(session, "go")
        assert asked == [
            v1.ReadTextFileRequest(session, "/project/a.txt", 2, 3),
            v1.WriteTextFileRequest(session, "/project/b.txt", "TEXT"),
        ]


@pytest.mark.requirement("files.write.empty-answers-accepted")
@pytest.mark.parametrize("answer", [None, {}, {"_meta": {"example.com": 1}}])
async def test_a_client_may_answer_a_write_with_null_or_an_object(serve, answer):
    handlers = Handlers()
    handlers.on_request("fs/write_text_file")(lambda _: answer)

    async def work(turn):
        await turn.client.write_text_file("b.txt", "text")

    async with serve(agent_with(work), handlers, declare=FILES) as editor:
        assert (await editor.prompt(await editor.open(), "go")).stop_reason == "end_turn"


async def read(client):
    await client.read_text_file("a.txt")


async def write(client):
    await client.write_text_file("a.txt", "")


async def run(client):
    await client.run("make")


@pytest.mark.requirement(
    "files.read.only-when-advertised",
    "files.write.only-when-advertised",
    "terminal.only-when-advertised",
    "capabilities.agent-omitted-is-unsupported",
)
@pytest.mark.parametrize(
    ("use", "capability"),
    [(read, "fs.read_text_file"), (write, "fs.write_text_file"), (run, "terminal")],
    ids=["read", "write", "run"],
)
async def test_what_is_not_lent_is_refused_before_anything_is_sent(serve, use, capability):
    handlers, asked = Handlers(), []
    handlers.on_other(lambda method, *_: asked.append(method))

    async def work(turn):
        with pytest.raises(CapabilityMissing) as raised:
            await use(turn.client)
        await turn.say(raised.value.capability)

    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(), "go")
        assert editor.text == capability
        assert asked == []


async def test_the_client_s_errors_reach_the_author_and_are_not_passed_on(serve, caplog):
    handlers = Handlers()

    @handlers.on(v1.ReadTextFileRequest)
    def read(request):
        raise LookupError("disk on fire")

    async def work(turn):
        await turn.client.read_text_file("a.txt")

    async with serve(agent_with(work), handlers, declare=FILES) as editor:
        with pytest.raises(PeerError) as raised:
            await editor.prompt(await editor.open(), "go")
        assert (raised.value.method, raised.value.code) == ("session/prompt", -32603)


async def test_the_client_s_name_is_known(serve):
    async def work(turn):
        await turn.say(f"{turn.client.info.name} {turn.client.info.version}")

    async with serve(agent_with(work)) as editor:
        await editor.prompt(await editor.open(), "go")
        assert editor.text == "editor 1.0"


class Terminals:
    """A client that lends terminals."""

    def __init__(self):
        self.handlers = Handlers()
        self.story, self.asked = [], []
        self.exited = asyncio.Event()
        self.handlers.on(v1.CreateTerminalRequest)(self.create)
        self.handlers.on(v1.WaitForTerminalExitRequest)(self.wait)
        self.handlers.on(v1.TerminalOutputRequest)(self.output)
        for message in v1.KillTerminalRequest, v1.ReleaseTerminalRequest:
            self.handlers.on(message)(self.note)

    def create(self, request):
        self.asked.append(request)
        self.story.append("create")
        return v1.CreateTerminalResponse(v1.TerminalId("t1"))

    async def wait(self, _):
        self.story.append("wait")
        await self.exited.wait()
        return v1.WaitForTerminalExitResponse(exit_code=3)

    def output(self, _):
        self.story.append("output")
        status = v1.TerminalExitStatus(exit_code=3) if self.exited.is_set() else v1.TerminalExitStatus(signal="KILL")
        return v1.TerminalOutputResponse("so far", truncated=True, exit_status=status)

    def note(self, request):
        assert request.terminal_id == "t1"
        self.story.append(type(request).__method__.removeprefix("terminal/"))


async def test_a_command_runs_to_its_end(serve):
    terminals, results = Terminals(), []
    terminals.exited.set()

    async def work(turn):
        results.append(
            await turn.client.run("make", ["test"], timeout=60, env={"CI": "1"}, cwd="sub", output_byte_limit=100)
        )

    async with serve(agent_with(work), terminals.handlers, declare=TERMINALS) as editor:
        session = await editor.open()
        await editor.prompt(session, "go")
        env = [v1.EnvVariable("CI", "1")]
        assert terminals.asked == [v1.CreateTerminalRequest(session, "make", ["test"], env, "/project/sub", 100)]
        assert terminals.story == ["create", "wait", "output", "release"]
        result = results[0]
        assert (result.output, result.exit_code, result.timed_out, result.truncated) == ("so far", 3, False, True)


async def test_the_exit_code_counts_although_the_client_leaves_it_out_of_the_output(serve):
    terminals, results = Terminals(), []
    terminals.exited.set()
    terminals.handlers.on(v1.TerminalOutputRequest)(lambda _: v1.TerminalOutputResponse("done", truncated=False))

    async def work(turn):
        results.append(await turn.client.run("make"))

    async with serve(agent_with(work), terminals.handlers, declare=TERMINALS) as editor:
        await editor.prompt(await editor.open(), "go")
        assert (results[0].output, results[0].exit_code) == ("done", 3)


@pytest.mark.requirement("terminal.kill.still-released")
async def test_a_command_that_takes_too_long_is_killed_and_its_output_is_kept(serve):
    terminals, results = Terminals(), []

    async def work(turn):
        results.append(await turn.client.run("sleep", ["1000"], timeout=0.01))

    async with serve(agent_with(work), terminals.handlers, declare=TERMINALS) as editor:
        await editor.prompt(await editor.open(), "go")
        assert terminals.story == ["create", "wait", "kill", "output", "release"]
        result = results[0]
        assert (result.output, result.exit_code, result.signal, result.timed_out) == ("so far", None, "KILL", True)


@pytest.mark.requirement("tool.terminal.embedded-before-release")
async def test_a_terminal_is_shown_in_a_tool_while_it_is_there(serve):
    terminals = Terminals()

    async def work(turn):
        async with turn.tool("Test", kind="execute") as tool:
            async with turn.client.terminal("make") as terminal:
                await tool.terminal(terminal)
            with pytest.raises(ValueError, match="already released"):
                await tool.terminal(terminal)

    async with serve(agent_with(work), terminals.handlers, declare=TERMINALS) as editor:
        await editor.prompt(await editor.open(), "go")
        shown = [it.content for it in editor.of(v1.ToolCallProgress) if it.content]
        assert shown[0] == [v1.Terminal(v1.TerminalId("t1"))]


async def test_an_error_inside_releases_the_terminal(serve):
    terminals = Terminals()

    async def work(turn):
        async with turn.client.terminal("make"):
            raise OSError

    async with serve(agent_with(work), terminals.handlers, declare=TERMINALS) as editor:
        with pytest.raises(PeerError):
            await editor.prompt(await editor.open(), "go")
        assert terminals.story == ["create", "release"]


async def test_a_terminal_has_no_id_before_it_is_there(serve):
    async def work(turn):
        with pytest.raises(RuntimeError, match="only inside its `async with`"):
            _ = turn.client.terminal("make").id

    async with serve(agent_with(work), declare=TERMINALS) as editor:
        await editor.prompt(await editor.open(), "go")


async def test_what_is_asked_by_its_name_ends_with_the_turn_as_well(serve):
    asked, handlers, tasks = asyncio.Event(), Handlers(), []

    @handlers.on_request("_editor/pick")
    async def never_answer(_):
        asked.set()
        await asyncio.Event().wait()

    async def work(turn):
        tasks.append(asyncio.create_task(turn.client.request_raw("_editor/pick", {})))
        await asked.wait()

    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(), "go")
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]


async def test_any_message_can_be_sent(serve):
    handlers, heard = Handlers(), []
    handlers.on_request("_editor/theme")(lambda _: {"theme": "dark"})
    handlers.on_notification("_editor/beep")(heard.append)

    async def work(turn):
        assert await turn.client.request_raw("_editor/theme", {}) == {"theme": "dark"}
        await turn.client.notify_raw("_editor/beep", {"times": 2})

    async with serve(agent_with(work), handlers) as editor:
        await editor.prompt(await editor.open(), "go")
        assert heard == [{"times": 2}]
