"""An agent whose client lends nothing helps itself, if its author allows; the author's code is the same."""

import asyncio

import pytest

import accord
from accord import v1
from accord.services.file_service import Files


async def prompt(agent, project, handlers=None, capabilities=None, roots=()):
    """One turn with a client that lends what these handlers do; the text that the agent said."""
    said = []
    handlers = handlers or accord.Handlers()

    @handlers.on(v1.SessionNotification)
    def update(notification):
        if isinstance(notification.update, v1.AgentMessageChunk):
            said.append(notification.update.content.text)

    here, there = accord.memory_pair()
    serving = asyncio.create_task(agent.serve(there))
    async with accord.Peer(here, handlers, role="client") as client:
        await client.initialize(v1.InitializeRequest(1, client_capabilities=capabilities or v1.ClientCapabilities()))
        session = await client.request(v1.NewSessionRequest(str(project), [], list(roots)))
        answer = await client.request(v1.PromptRequest.of(session.session_id, "go"))
    await serving
    return "".join(said), answer.stop_reason


def worker(**options):
    agent = accord.Agent("worker", **options)

    @agent.on_prompt
    async def work(turn):
        text = await turn.client.read_text_file("a.txt")
        await turn.client.write_text_file("b.txt", text.upper())
        result = await turn.client.run("cat", ["b.txt"])
        await turn.say(f"{result.output} {result.exit_code} {turn.client.can_run_commands}")

    return agent


@pytest.mark.requirement("session.cwd.wins-over-spawn")
async def test_what_the_client_does_not_lend_is_the_agent_s_own(project):
    (project / "a.txt").write_text("text")
    assert await prompt(worker(local=True), project) == ("TEXT 0 True", "end_turn")
    assert (project / "b.txt").read_text() == "TEXT"


async def test_what_the_client_lends_goes_before(project):
    (project / "a.txt").write_text("on the disk")
    handlers = accord.Handlers()

    @handlers.on(v1.ReadTextFileRequest)
    def read(request):
        return v1.ReadTextFileResponse("from the editor")

    lent = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(read_text_file=True))
    assert (await prompt(worker(local=True), project, handlers, lent))[0] == "FROM THE EDITOR 0 True"


@pytest.mark.parametrize("local", [False, [Files(write=False)]])
async def test_what_the_author_does_not_allow_is_missing(project, local):
    (project / "a.txt").write_text("text")
    seen = []
    agent = accord.Agent("worker", local=local)

    @agent.on_prompt
    async def work(turn):
        seen.append((turn.client.can_read_files, turn.client.can_write_files, turn.client.can_run_commands))
        with pytest.raises(accord.CapabilityMissing):
            await turn.client.write_text_file("b.txt", "")

    assert (await prompt(agent, project))[1] == "end_turn"
    assert seen == [(bool(local), False, False)]


async def test_errors_are_those_that_a_client_would_answer(project):
    errors = []
    agent = accord.Agent("worker", local=True)

    @agent.on_prompt
    async def work(turn):
        for path in ("missing.txt", "/etc/passwd"):
            try:
                await turn.client.read_text_file(path)
            except accord.PeerError as error:
                errors.append((error.method, error.code))

    await prompt(agent, project)
    assert errors == [("fs/read_text_file", -32002), ("fs/read_text_file", -32602)]


@pytest.mark.requirement(
    "session.roots.bound-tools",
    "session.roots.escape-proof",
    "session.roots.in-scope",
    "session.cwd.is-a-root",
    "session.cwd.base-of-relative-paths",
)
async def test_every_root_is_in_reach_and_nothing_else_is(project, tmp_path):
    library, secrets = tmp_path / "library", tmp_path / "secrets"
    for folder in (library, secrets):
        folder.mkdir()
        (folder / "a.txt").write_text(folder.name)
    (project / "a.txt").write_text("project")
    (library / "only-here.txt").write_text("library")
    (library / "link").symlink_to(secrets)
    read = {}
    agent = accord.Agent("worker", local=True)

    @agent.on_prompt
    async def work(turn):
        assert turn.session.roots.folders == (project, library)
        for path in ("a.txt", library / "a.txt", "only-here.txt", library / "link" / "a.txt", secrets / "a.txt"):
            try:
                read[str(path)] = await turn.client.read_text_file(path)
            except accord.PeerError as error:
                read[str(path)] = error.code

    await prompt(agent, project, roots=[str(library)])
    assert list(read.values()) == ["project", "library", -32002, -32602, -32602]


async def test_a_session_that_ends_ends_its_commands(project):
    terminals = accord.Terminals()
    opened = []
    agent = accord.Agent("worker", local=[terminals])

    @agent.on_prompt
    async def work(turn):
        request = v1.CreateTerminalRequest(turn.session.id, "sleep", ["1000"])
        created = await turn.client.request(request)
        opened.append(terminals.find(turn.session, created.terminal_id))

    await prompt(agent, project)
    assert opened[0].exit_status is not None
