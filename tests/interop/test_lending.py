"""What our client lends, in the hands of agents that are written with other people's SDKs.

It is `accord.connect` and the services as anybody would use them. The agents are those of `interop/agents`: a prompt is
a list of actions, and they say what each of their requests was answered with, as their SDK gives it to them.
"""

import asyncio
import json
import os
from contextlib import asynccontextmanager

import pytest
from benchmarks.build import Unavailable
from interop.outcomes import declared
from interop.peers import SDKS, THEIRS, command

import accord
from tests.waiting import DEADLINE

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

"""Seconds until a wait for something that should happen is a failure."""

ASK_FOR_SESSIONS = [name for name in THEIRS if declared("accord", name, "elicitation") is None]
"""Whose agents can ask the user something in a session."""

HEAR_THE_END = [name for name in THEIRS if name != "go"]
"""Whose agents hear the answers to what a cancelled turn has asked; in Go, its context takes the requests along."""

KEPT = {"terminalId": "<terminal>"}
HOLD = "exec 3>held; sleep 600 & echo ready; wait"
"""A command and its child, who hold the pipe called `held` open for as long as they live."""

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
]

POLICY = """
[[rules]]
answer = "reject"
paths = ["**/.env"]

[[rules]]
answer = "allow"
kinds = ["edit"]
paths = ["src/**"]

[[rules]]
answer = "allow"
commands = ["git diff*"]
"""

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "age": {"type": "integer", "minimum": 0},
        "tall": {"type": "boolean", "default": True},
        "colour": {"type": "string", "enum": ["red", "green"]},
    },
    "required": ["name"],
}


@pytest.fixture(params=THEIRS)
def agent(request):
    sdk = SDKS[request.param]
    try:
        return command(sdk, "agent"), sdk.environment
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture
def project(tmp_path):
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def held(project):
    """Whether anybody still holds the session's pipe."""
    os.mkfifo(project / "held")
    reader = os.open(project / "held", os.O_RDONLY | os.O_NONBLOCK)

    def held():
        try:
            return os.read(reader, 1) != b""
        except BlockingIOError:
            return True

    yield held
    os.close(reader)


class Opened:
    """Terminals, and the one that the agent has opened."""

    def __init__(self):
        self._opened = asyncio.Queue()
        self.service = accord.Terminals(on_open=lambda _, terminal: self._opened.put_nowait(terminal))

    async def ready(self):
        terminal = await self._opened.get()
        async for _ in terminal.follow():
            if terminal.text == "ready\n":
                return
        pytest.fail(f"it has ended with {terminal.exit_status}: {terminal.text}")


class Hesitant:
    """A user who never answers the first question, and any other with this."""

    def __init__(self, later):
        self.asked = asyncio.Event()
        self.left_alone = asyncio.Event()
        self._later = later

    async def answer(self, _):
        if self.asked.is_set():
            return self._later
        self.asked.set()
        try:
            return await asyncio.Event().wait()
        finally:
            self.left_alone.set()


@asynccontextmanager
async def borrowing(agent, folder, **lent):
    started, environment = agent
    async with asyncio.timeout(DEADLINE), accord.connect(started, accord.Client(**lent), env=environment) as remote:
        yield await remote.new_session(folder)


def ask(method, keep=None, **params):
    return {"ask": method, "params": params, "keep": keep or {}}


def read(path, **params):
    return ask("fs/read_text_file", path=str(path), **params)


def write(path, content):
    return ask("fs/write_text_file", path=str(path), content=content)


def run(*words, **params):
    return ask("terminal/create", {"terminal": "terminalId"}, command=words[0], args=words[1:], **params)


def permission(tool_call, **known):
    return ask("session/request_permission", toolCall={"toolCallId": tool_call, **known}, options=OPTIONS)


def form():
    return ask("elicitation/create", mode="form", message="Who are you?", requestedSchema=FORM)


def link(url, elicitation_id="e1"):
    return ask("elicitation/create", mode="url", message="Log in", elicitationId=elicitation_id, url=url)


def said(outcome):
    """What each request of the turn was answered with."""
    return [json.loads(line) for line in outcome.text.split("\n") if line]


async def answers(session, *actions):
    outcome = await session.prompt(json.dumps(actions))
    assert outcome.stop_reason == "end_turn"
    return said(outcome)


def code(answer):
    return answer.get("error", {}).get("code")


def chosen(answer):
    return answer["result"]["outcome"].get("optionId", "cancelled")


async def test_it_reads_what_the_user_sees_and_writes_what_the_disk_then_has(agent, project):
    letter, edited, new = project / "letter.txt", project / "edited.txt", project / "new" / "folder" / "new.txt"
    letter.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    edited.write_text("saved\n")
    files = accord.Files(unsaved={edited: "not saved\n"})
    async with borrowing(agent, project, files=files) as session:
        got = await answers(session, read(letter), read(letter, line=2, limit=1), read(edited))
        assert [it["result"]["content"] for it in got] == ["one\r\ntwo\r\nthree\r\n", "two\r\n", "not saved\n"]
        *written, again = await answers(session, write(letter, "eins\nzwei\n"), write(new, "grün\n"), read(new))
        assert [code(it) for it in written] == [None, None]
        assert again["result"]["content"] == "grün\n"
    assert letter.read_bytes() == b"eins\r\nzwei\r\n"
    assert new.read_bytes() == "grün\n".encode()
    assert edited.read_text() == "saved\n"
    of_letter, of_new = files.changes
    assert [of_letter.path, of_new.path] == [letter, new]
    await files.undo(of_letter)
    assert letter.read_bytes() == b"one\r\ntwo\r\nthree\r\n"


async def test_it_is_told_why_it_does_not_get_a_file(agent, project):
    outside = project.parent / "outside.txt"
    outside.write_text("secret\n")
    (project / "link.txt").symlink_to(outside)
    (project / "way").symlink_to(project.parent)
    (project / "picture").write_bytes(bytes(range(256)))
    ways = [outside, project / ".." / "outside.txt", project / "link.txt", project / "way" / "outside.txt"]
    async with borrowing(agent, project, files=True) as session:
        read_outside = await answers(session, *map(read, ways))
        written_outside = await answers(session, *(write(way, "mine\n") for way in ways))
        binary, missing = await answers(session, read(project / "picture"), read(project / "none.txt"))
    assert [code(it) for it in read_outside + written_outside] == [-32602] * 8
    assert (code(binary), code(missing)) == (-32602, -32002)
    assert outside.read_text() == "secret\n"
    assert {it.name for it in project.parent.iterdir()} == {"outside.txt", "project"}


async def test_it_gets_nothing_that_is_not_lent(agent, project):
    (project / "a.txt").write_text("one\n")
    async with borrowing(agent, project) as session:
        *refused, rejected = await answers(
            session,
            read(project / "a.txt"),
            write(project / "a.txt", "two\n"),
            run("true"),
            permission("t1", title="Edit"),
        )
    assert [code(it) for it in refused] == [-32601] * 3
    assert chosen(rejected) == "no"
    assert (project / "a.txt").read_text() == "one\n"


async def test_its_command_runs_to_the_end_where_and_as_it_said(agent, project):
    script = "echo $GREETING; pwd; printf late >&2; exit 3"
    async with borrowing(agent, project, terminals=True) as session:
        _, ended, output, released, after = await answers(
            session,
            run("sh", "-c", script, env=[{"name": "GREETING", "value": "good day"}], cwd=str(project)),
            ask("terminal/wait_for_exit", **KEPT),
            ask("terminal/output", **KEPT),
            ask("terminal/release", **KEPT),
            ask("terminal/output", **KEPT),
        )
        outside, unknown = await answers(session, run("true", cwd=str(project.parent)), run("no-such-command-here"))
    assert ended["result"]["exitCode"] == 3
    assert output["result"]["output"] == f"good day\n{project}\nlate"
    assert output["result"]["truncated"] is False
    assert output["result"]["exitStatus"]["exitCode"] == 3
    assert [code(it) for it in (released, after, outside, unknown)] == [None, -32002, -32602, -32602]


async def test_its_output_is_cut_at_the_limit_between_characters(agent, project):
    async with borrowing(agent, project, terminals=True) as session:
        _, _, output = await answers(
            session,
            run("sh", "-c", "printf 'aaaüü'", outputByteLimit=3),
            ask("terminal/wait_for_exit", **KEPT),
            ask("terminal/output", **KEPT),
        )
    assert output["result"]["output"] == "ü"
    assert output["result"]["truncated"] is True


async def test_its_command_is_killed_with_its_children_and_can_still_be_read(agent, project, held):
    terminals = Opened()
    async with borrowing(agent, project, terminals=terminals.service) as session:
        [created] = await answers(session, run("sh", "-c", HOLD))
        await terminals.ready()
        assert held()
        kept = {"terminalId": created["result"]["terminalId"]}
        running, killed, ended, output, released, after = await answers(
            session,
            ask("terminal/output", **kept),
            ask("terminal/kill", **kept),
            ask("terminal/wait_for_exit", **kept),
            ask("terminal/output", **kept),
            ask("terminal/release", **kept),
            ask("terminal/output", **kept),
        )
        assert not held()
    assert running["result"]["output"] == "ready\n"
    assert running["result"].get("exitStatus") is None
    assert (ended["result"].get("exitCode"), ended["result"]["signal"]) == (None, "SIGTERM")
    assert output["result"]["output"] == "ready\n"
    assert output["result"]["exitStatus"]["signal"] == "SIGTERM"
    assert [code(it) for it in (killed, released, after)] == [None, None, -32002]


@pytest.mark.parametrize("released", [True, False])
async def test_nothing_of_its_command_is_left_once_it_is_released_or_the_agent_has_gone(agent, project, held, released):
    terminals = Opened()
    async with borrowing(agent, project, terminals=terminals.service) as session:
        [created] = await answers(session, run("sh", "-c", HOLD))
        await terminals.ready()
        assert held()
        if released:
            await answers(session, ask("terminal/release", terminalId=created["result"]["terminalId"]))
            assert not held()
    assert not held()


async def test_the_policy_decides_and_the_user_where_it_does_not(agent, project, tmp_path):
    source, secrets = ([{"path": str(project / "src" / name)}] for name in ("a.py", ".env"))
    begun = {"toolCallId": "t1", "title": "Edit", "kind": "edit", "status": "pending", "locations": source}
    asked = []

    def user(question):
        asked.append((question.tool_call.title, question.command))
        return "never"

    audit = tmp_path / "audit.jsonl"
    permissions = accord.Permissions(user, policy=accord.PermissionPolicy.parse(POLICY), audit=audit)
    async with borrowing(agent, project, permissions=permissions) as session:
        decisions = await answers(
            session,
            {"update": {"sessionUpdate": "tool_call", **begun}},
            permission("t1"),  # says nothing of what it is about: the update has
            permission("t2", title="Edit", kind="edit", locations=secrets),
            permission("t3", title="Compare", kind="execute", rawInput={"command": "git diff HEAD"}),
            permission("t4", title="Compare", kind="execute", rawInput={"command": "git diff; rm -r src"}),
        )
    assert [chosen(it) for it in decisions] == ["yes", "no", "yes", "never"]
    assert asked == [("Compare", "git diff; rm -r src")]
    written = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(it["toolCall"], it["option"], it["by"]) for it in written] == [
        ("t1", "yes", "rule 2"),
        ("t2", "no", "rule 1"),
        ("t3", "yes", "rule 3"),
        ("t4", "never", "user"),
    ]


async def test_what_the_user_said_always_holds_when_the_agent_comes_again(agent, project, tmp_path):
    asked = []

    def user(question):
        asked.append(question.tool_call.id)
        return "always"

    remembered = accord.RememberedAnswers(tmp_path / "remembered.json")
    for tool_call in ("first", "second"):
        permissions = accord.Permissions(user, remembered=remembered)
        async with borrowing(agent, project, permissions=permissions) as session:
            [decision] = await answers(session, permission(tool_call, title="make", kind="execute"))
        assert chosen(decision) == ("always" if tool_call == "first" else "yes")
    assert asked == ["first"]
    assert [(it.agent, it.folder) for it in remembered] == [("interop-agent", str(project))]


async def cancelled_at(user, session, question):
    reply = session.prompt(json.dumps([question, {"wait": True}]))
    await user.asked.wait()
    outcome = await reply.cancel()
    assert user.left_alone.is_set()
    assert outcome.stop_reason == "cancelled"
    return outcome


@pytest.mark.parametrize("agent", HEAR_THE_END, indirect=True)
async def test_a_cancelled_turn_ends_although_the_user_has_not_decided(agent, project):
    user = Hesitant(later=True)
    async with borrowing(agent, project, permissions=user.answer) as session:
        outcome = await cancelled_at(user, session, permission("t1", title="Edit", kind="edit"))
        [later] = await answers(session, permission("t2", title="Edit", kind="edit"))
    assert [chosen(it) for it in said(outcome)] == ["cancelled"]
    assert [call.status for call in outcome.tool_calls] == ["cancelled"]
    assert chosen(later) == "yes"


@pytest.mark.parametrize("agent", ASK_FOR_SESSIONS, indirect=True)
async def test_a_cancelled_turn_ends_although_the_user_has_not_filled_in_the_form(agent, project):
    user = Hesitant(later={"name": "Ada"})
    async with borrowing(agent, project, elicitation=user.answer) as session:
        outcome = await cancelled_at(user, session, form())
        [later] = await answers(session, form())
    assert [it["result"]["action"] for it in said(outcome)] == ["cancel"]
    assert later["result"]["content"] == {"name": "Ada"}


@pytest.mark.parametrize("agent", ASK_FOR_SESSIONS, indirect=True)
async def test_a_form_comes_back_as_its_schema_wants_it_or_not_at_all(agent, project):
    right = {"name": "Ada", "age": 36, "tall": False, "colour": "red"}
    answered = iter([{"name": "Ada", "age": -1, "colour": "blue"}, right, False, None])
    asked = []

    def fill(question):
        asked.append(question)
        return next(answered)

    async with borrowing(agent, project, elicitation=fill) as session:
        accepted, declined, dismissed, undeclared = await answers(
            session, form(), form(), form(), link("https://example.com/login")
        )
    assert accepted["result"] == {"action": "accept", "content": right}
    assert [it["result"]["action"] for it in (declined, dismissed)] == ["decline", "cancel"]
    assert code(undeclared) == -32602
    assert asked[0].message == "Who are you?"
    assert {field.title for field in asked[0].fields} == {"Name", "age", "tall", "colour"}
    assert asked[0].content == {"tall": True}
    assert set(asked[1].problems) == {"age", "colour"}


@pytest.mark.parametrize("agent", ASK_FOR_SESSIONS, indirect=True)
async def test_a_link_is_visited_when_the_user_agrees_and_its_completion_is_heard(agent, project):
    answered, visited, completed = iter([True, False, None]), [], []

    def visit(question):
        visited.append(question)
        return next(answered)

    elicitation = accord.Elicitation(visit=visit, on_complete=completed.append)
    async with borrowing(agent, project, elicitation=elicitation) as session:
        agreed, declined, dismissed, refused = await answers(
            session,
            link("https://example.com/login"),
            {"tell": "elicitation/complete", "params": {"elicitationId": "e1"}},
            link("https://example.com/other", "e2"),
            link("https://example.com/third", "e3"),
            link("ftp://example.com/fourth", "e4"),
        )
        await visited[0].completed.wait()
    assert [it["result"]["action"] for it in (agreed, declined, dismissed)] == ["accept", "decline", "cancel"]
    assert code(refused) == -32602
    assert [(it.link.url, it.link.domain) for it in visited] == [
        ("https://example.com/login", "example.com"),
        ("https://example.com/other", "example.com"),
        ("https://example.com/third", "example.com"),
    ]
    assert completed == visited[:1]
