"""Files and terminals of which each use is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import accord
from accord import v1
from accord.errors import PeerError
from accord.services.guarded_services import Guarded, UsePermissions
from accord.services.permission_question import Level

Answers = Callable[[accord.PermissionQuestion], accord.v1.PermissionOption | str | bool]


class Asked:
    """Notes each question, and answers with what a test has prepared."""

    def __init__(self, *answers: str | bool) -> None:
        self.questions: list[accord.PermissionQuestion] = []
        self._answers = list(answers)

    async def __call__(self, question: accord.PermissionQuestion) -> str | bool:
        self.questions.append(question)
        return self._answers.pop(0)

    @property
    def titles(self) -> list[str]:
        return [question.tool_call.title for question in self.questions]


def client_of(asked: Asked, policy: str = "", level: Level = "none") -> accord.Client:
    consent = UsePermissions(asked, level=level, policy=accord.PermissionPolicy.parse(policy) if policy else None)
    return accord.Client(
        files=Guarded(accord.Files(), consent), terminals=Guarded(accord.Terminals(), consent), permissions=consent
    )


async def played(
    work: Callable[[accord.Turn], object], asked: Asked, folder: Path, policy: str = "", level: Level = "none"
) -> str:
    agent = accord.Agent("worker")
    agent.on_prompt(work)
    async with accord.connect(agent, client_of(asked, policy, level)) as remote:
        session = await remote.new_session(folder)
        return (await session.prompt("go")).text


async def tried(turn: accord.Turn, name: str, text: str) -> None:
    try:
        await turn.client.write_text_file(name, text)
        await turn.say("written ")
    except PeerError as error:
        await turn.say(f"{error.message} ")


async def test_each_use_is_a_question_that_shows_what_it_would_do(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one\n")

    async def work(turn: accord.Turn) -> None:
        await turn.say(await turn.client.read_text_file("notes.txt"))
        await turn.client.write_text_file("notes.txt", "two\n")
        await turn.say((await turn.client.run("echo", ["a b"])).output)

    asked = Asked(True, True, True)
    assert await played(work, asked, tmp_path) == "one\na b\n"
    assert asked.titles == ["read notes.txt", "write notes.txt", "run echo 'a b'"]
    read, write, run = asked.questions
    assert read.paths == write.paths == (tmp_path / "notes.txt",)
    assert [(it.old_text, it.new_text) for it in write.tool_call.diffs] == [("one\n", "two\n")]
    assert (run.command, run.tool_call.kind) == (["echo", "a b"], "execute")
    assert (tmp_path / "notes.txt").read_text() == "two\n"


async def test_what_the_user_refuses_does_not_happen_and_the_agent_is_told(tmp_path: Path) -> None:
    async def work(turn: accord.Turn) -> None:
        await tried(turn, "notes.txt", "two\n")
        try:
            await turn.client.run("touch", ["made"])
        except PeerError as error:
            await turn.say(error.message)

    said = await played(work, Asked(False, False), tmp_path)
    assert said == "the user did not allow this the user did not allow this"
    assert not (tmp_path / "notes.txt").exists()
    assert not (tmp_path / "made").exists()


async def test_always_holds_for_this_session_and_this_kind_of_use(tmp_path: Path) -> None:
    async def work(turn: accord.Turn) -> None:
        for name in ("a", "b", "c"):
            await tried(turn, name, "x")
        await turn.client.read_text_file("a")

    asked = Asked("always", False)
    with pytest.raises(PeerError):
        await played(work, asked, tmp_path)
    assert asked.titles == ["write a", "read a"]


async def test_always_to_the_agents_own_question_covers_these_uses_and_no_others(tmp_path: Path) -> None:
    options = [v1.PermissionOption(v1.PermissionOptionId("p"), "Always", "allow_always")]

    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Run", kind="execute", raw_input={"command": "echo 'a b'"}) as tool:
            assert await tool.ask(*options)
        async with turn.tool("Write", kind="edit") as tool:
            await tool.diff("a.txt", None, "one")
            assert await tool.ask(*options)
        for _ in range(2):
            await turn.client.run("sh", ["-c", "echo 'a b'"])
            await turn.client.run("echo", ["a b"])
            await turn.client.write_text_file("a.txt", "another text")
        await turn.client.write_text_file("b.txt", "two")
        await turn.client.run("echo", ["a", "b"])

    asked = Asked(True, True, True, True)
    await played(work, asked, tmp_path)
    assert asked.titles == ["Run", "Write", "write b.txt", "run echo a b"]


async def test_a_rule_that_takes_an_always_option_allows_one_use_only(tmp_path: Path) -> None:
    options = [v1.PermissionOption(v1.PermissionOptionId("p"), "Always", "allow_always")]

    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Run", kind="execute", raw_input={"command": "true"}) as tool:
            assert await tool.ask(*options)
        await turn.client.run("true")
        await turn.client.run("true")

    asked = Asked(True)
    rule = '[[rules]]\nanswer = "allow"\ntitles = ["Run"]\n'
    await played(work, asked, tmp_path, rule)
    assert asked.titles == ["run true"]


async def test_what_was_just_allowed_in_the_agents_own_question_is_not_asked_again(tmp_path: Path) -> None:
    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Write it", kind="edit") as tool:
            await tool.diff(turn.cwd / "a", None, "shown")
            await tool.ask()
            await tried(turn, "a", "shown")
            await tried(turn, "a", "shown")  # the second time is another use
            await tried(turn, "a", "something else")

    asked = Asked(True, False, False)
    assert await played(work, asked, tmp_path) == "written the user did not allow this the user did not allow this "
    assert asked.titles == ["Write it", "write a", "write a"]
    assert (tmp_path / "a").read_text() == "shown"


@pytest.mark.parametrize(
    ("level", "asked_about"), [("ask", ["write a", "run true"]), ("edit", ["run true"]), ("auto", [])]
)
async def test_a_level_decides_about_each_use(tmp_path: Path, level: Level, asked_about: list[str]) -> None:
    async def work(turn: accord.Turn) -> None:
        await tried(turn, "a", "x")
        await turn.say(await turn.client.read_text_file("a"))
        await turn.client.run("true")

    asked = Asked(True, True)
    assert await played(work, asked, tmp_path, level=level) == "written x"
    assert asked.titles == asked_about


async def test_the_change_of_a_part_that_a_diff_showed_is_one_act_with_the_write(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\nthree\n")

    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Edit it", kind="edit") as tool:
            await tool.diff(turn.cwd / "." / "a", "two\n", "2\n")
            await tool.diff(turn.cwd / "a", "three\n", "3\n")
            await tool.ask()
            await tried(turn, "a", "one\n2\n3\n")
            await tried(turn, "a", "one\n2\n3\n4\n")
            (tmp_path / "a").write_text("one\ntwo\nthree\n")
            await tried(turn, "a", "one\n2\nthree\n")  # the act that was allowed is over

    asked = Asked(True, False, False)
    assert await played(work, asked, tmp_path) == "written the user did not allow this the user did not allow this "
    assert asked.titles == ["Edit it", "write a", "write a"]


async def test_a_diff_of_one_place_does_not_cover_a_change_of_all_places(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x = 1\ny = 1\n")

    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Edit it", kind="edit") as tool:
            await tool.diff(turn.cwd / "a", "1", "2")
            await tool.ask()
            await tried(turn, "a", "x = 2\ny = 2\n")

    asked = Asked(True, False)
    assert await played(work, asked, tmp_path) == "the user did not allow this "


async def test_a_question_that_names_a_file_without_a_diff_covers_one_write_of_it(tmp_path: Path) -> None:
    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Edit it", kind="edit", locations=[turn.cwd / "a"]) as tool:
            await tool.ask()
            await tried(turn, "b", "x")
            await tried(turn, "a", "x")
            await tried(turn, "a", "y")

    asked = Asked(True, False, False)
    assert await played(work, asked, tmp_path) == ("the user did not allow this written the user did not allow this ")
    assert asked.titles == ["Edit it", "write b", "write a"]


@pytest.mark.parametrize(
    ("said", "used"),
    [
        ("echo 'a b'", ["sh", "-c", "echo 'a b'"]),
        (["sh", "-c", "echo 'a b'"], ["bash", "-lc", "echo 'a b'"]),
        ("sh -c \"echo 'a b'\"", ["echo", "a b"]),
        ("bash -c 'echo $HOME; true'", ["/bin/sh", "-c", "echo $HOME; true"]),
    ],
)
async def test_a_command_is_the_same_through_a_shell(tmp_path: Path, said: str | list[str], used: list[str]) -> None:
    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Run it", kind="execute", raw_input={"command": said}) as tool:
            await tool.ask()
            await turn.client.run(used[0], used[1:])

    asked = Asked(True)
    await played(work, asked, tmp_path)
    assert asked.titles == ["Run it"]


@pytest.mark.parametrize(
    ("said", "used"),
    [
        ("sh -c x; rm a", ["sh", "-c", "x; rm a"]),
        ("sh -c 'x' a", ["sh", "-c", "x"]),
        ("echo ';' x", ["sh", "-c", "echo ; x"]),
        ("A=1 sh -c x", ["sh", "-c", "x"]),
    ],
)
async def test_a_command_that_only_looks_the_same_is_asked_about(tmp_path: Path, said: str, used: list[str]) -> None:
    async def work(turn: accord.Turn) -> None:
        async with turn.tool("Run it", kind="execute", raw_input={"command": said}) as tool:
            await tool.ask()
            await turn.client.run(used[0], used[1:])

    asked = Asked(True, False)
    with pytest.raises(PeerError, match="the user did not allow this"):
        await played(work, asked, tmp_path)
    assert len(asked.titles) == 2


async def test_a_refusal_says_what_refused_and_what_allows(tmp_path: Path) -> None:
    policy = accord.PermissionPolicy.parse('[[rules]]\nanswer = "reject"\npaths = ["b"]', source="rules.toml")
    consent = UsePermissions(policy=policy)
    client = accord.Client(files=Guarded(accord.Files(), consent), permissions=consent)
    agent = accord.Agent("worker")

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        await tried(turn, "a", "x")
        await tried(turn, "b", "x")

    async with accord.connect(agent, client) as remote:
        said = (await (await remote.new_session(tmp_path)).prompt("go")).text
    assert said == (
        "nobody was there to ask; a client of level 'edit' allows this "
        "rule 1 of rules.toml refuses this; change it there "
    )


async def test_a_line_for_a_shell_is_allowed_only_letter_by_letter(tmp_path: Path) -> None:
    async def work(turn: accord.Turn) -> None:
        line = "echo ';' touch made"
        async with turn.tool("Say it", kind="execute", raw_input={"command": line}) as tool:
            await tool.ask()
            for same in ("echo ; touch made", line):
                try:
                    await turn.say((await turn.client.run(same)).output)
                except PeerError as error:
                    await turn.say(f"{error.message}\n")

    asked = Asked(True, False)
    assert await played(work, asked, tmp_path) == "the user did not allow this\n; touch made\n"
    assert asked.titles == ["Say it", "run echo ; touch made"]
    assert not (tmp_path / "made").exists()


async def test_variables_are_a_part_of_the_command_that_is_judged(tmp_path: Path) -> None:
    async def work(turn: accord.Turn) -> None:
        await turn.client.run("echo", ["hi"])
        try:
            await turn.client.run("echo", ["hi"], env={"PATH": "/evil"})
        except PeerError as error:
            await turn.say(error.message)

    asked = Asked(False)
    rules = '[[rules]]\nanswer = "allow"\ncommands = ["echo hi"]'
    assert await played(work, asked, tmp_path, rules) == "the user did not allow this"
    assert asked.titles == ["run env PATH=/evil echo hi"]


async def test_a_variable_that_only_keeps_a_secret_from_a_command_is_not_judged(tmp_path: Path) -> None:
    async def work(turn: accord.Turn) -> None:
        await turn.client.run("echo", env={"OPENAI_API_KEY": ""})
        await turn.client.run("echo", env={"OPENAI_API_KEY": "x", "PATH_TOKEN": "", "LD_PRELOAD": ""})

    asked = Asked(True, True)
    await played(work, asked, tmp_path)
    assert asked.titles == ["run echo", "run env OPENAI_API_KEY=x LD_PRELOAD= echo"]


async def test_a_write_to_git_is_refused_without_a_question(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "link").symlink_to(".git")

    async def work(turn: accord.Turn) -> None:
        await tried(turn, ".git/config", "[core]\n")
        await tried(turn, "link/config", "[core]\n")

    assert (await played(work, asked := Asked(), tmp_path)).count("nothing is written to .git") == 2
    assert asked.titles == []
    assert not list((tmp_path / ".git").iterdir())


async def test_rules_answer_before_the_user_and_a_path_outside_is_no_question(tmp_path: Path) -> None:
    (tmp_path / "open.txt").write_text("open")
    (tmp_path / ".env").write_text("secret")

    async def work(turn: accord.Turn) -> None:
        await turn.say(await turn.client.read_text_file("open.txt"))
        for name in (".env", "/etc/passwd", "missing.txt"):
            try:
                await turn.client.read_text_file(name)
            except PeerError as error:
                await turn.say(f"; {error.message}")

    rules = '[[rules]]\nanswer = "reject"\npaths = ["**/.env"]\n[[rules]]\nanswer = "allow"\nkinds = ["read"]'
    said = await played(work, Asked(), tmp_path, rules)
    assert (
        said
        == "open; rule 1 of policy refuses this; change it there; outside the session's folders; Resource not found"
    )


async def test_a_use_that_waits_for_an_earlier_question_is_not_asked_after_the_turn_was_cancelled(
    tmp_path: Path,
) -> None:
    import asyncio

    open_now = asyncio.Event()
    titles: list[str] = []

    async def never(question: accord.PermissionQuestion) -> bool:
        titles.append(question.tool_call.title)
        open_now.set()
        await asyncio.Event().wait()
        return True

    agent = accord.Agent("worker")

    @agent.on_prompt
    async def work(turn: accord.Turn) -> None:
        writes = [turn.client.write_text_file(name, "x") for name in ("a", "b")]
        await asyncio.gather(*writes, return_exceptions=True)

    consent = UsePermissions(never)
    client = accord.Client(files=Guarded(accord.Files(), consent), permissions=consent)
    async with accord.connect(agent, client) as remote:
        session = await remote.new_session(tmp_path)
        reply = session.prompt("go")
        await open_now.wait()
        assert (await reply.cancel()).stop_reason == "cancelled"
    assert len(titles) == 1
    assert v1.ToolCallId("write") not in session.state.tool_calls


async def test_a_question_about_a_file_elsewhere_is_answered(tmp_path: Path) -> None:
    async def work(turn: accord.Turn) -> None:
        change = v1.Diff("/elsewhere/notes.txt", "new\n")
        async with turn.tool("Edit the notes", kind="edit") as tool:
            await tool.content(change)
            await turn.say("allowed" if await tool.ask() else "refused")

    asked = Asked(True)
    assert await played(work, asked, tmp_path) == "allowed"
    assert asked.titles == ["Edit the notes"]
