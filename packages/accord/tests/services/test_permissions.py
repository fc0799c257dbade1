"""May the agent do this? Rules, remembered answers and the user, in this order; a refusal is a reject option."""

import asyncio
import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import accord
from accord import v1
from accord.errors import ConfigurationError
from accord.services.permission_policy import PermissionPolicy, Rule, simple_commands
from accord.services.permission_question import LEVELS, PermissionQuestion, level_of
from accord.services.permission_service import Permissions, RememberedAnswers
from accord.session import ToolCallState

ALL = [v1.PermissionOption.of(kind) for kind in ("allow_always", "allow_once", "reject_always", "reject_once")]


def asked(session, *, options=ALL, **call):
    paths = call.pop("paths", ())
    locations = [v1.ToolCallLocation(str(path)) for path in paths]
    return PermissionQuestion(session, ToolCallState(v1.ToolCallId("t"), locations=locations, **call), options)


async def answer(permissions, question):
    outcome = (await permissions.answer(question)).outcome
    return getattr(outcome, "option_id", "cancelled")


def never(question):
    raise AssertionError("nobody was to be asked")


@pytest.mark.requirement("permission.selected-is-offered", "permission.user-decides")
@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (True, "allow_once"),
        (False, "reject_once"),
        (None, "reject_once"),
        ("allow_always", "allow_always"),
        (ALL[2], "reject_always"),
        ("not offered", "reject_once"),
    ],
)
@pytest.mark.parametrize("awaitable", [False, True])
async def test_the_user_chooses(session, choice, expected, awaitable):
    async def later(_):
        await asyncio.sleep(0)
        return choice

    permissions = Permissions(later if awaitable else lambda _: choice)
    assert await answer(permissions, asked(session, title="Do it")) == expected


async def test_without_anybody_to_ask_it_is_rejected(session):
    assert await answer(Permissions(), asked(session)) == "reject_once"


async def test_a_refusal_is_cancelled_only_where_nothing_rejects(session):
    assert await answer(Permissions(), asked(session, options=ALL[:2])) == "cancelled"
    assert await answer(Permissions(), asked(session, options=ALL[:3])) == "reject_always"


async def test_what_cannot_be_allowed_is_rejected(session):
    assert await answer(Permissions(level="auto"), asked(session, options=ALL[2:])) == "reject_once"


async def test_an_ask_that_fails_rejects(session, caplog):
    def ask(_):
        raise RuntimeError("no window")

    assert await answer(Permissions(ask), asked(session)) == "reject_once"
    assert "no window" in caplog.text


async def test_a_cancelled_turn_answers_its_open_questions_with_cancelled(project, session, asking, lend, within):
    open_questions, closed = asyncio.Semaphore(0), []

    async def ask(question):
        open_questions.release()
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(question.tool_call.id)

    permissions = Permissions(ask)
    other = asking(project, session_id="s2")
    async with lend(permissions, sessions=[session, other]) as client:
        requests = [
            asyncio.create_task(
                client.request(v1.RequestPermissionRequest(it.id, v1.ToolCallUpdate(v1.ToolCallId(name)), ALL))
            )
            for it, name in ((session, "a"), (session, "b"), (other, "c"))
        ]
        for _ in requests:
            await within(open_questions.acquire())
        permissions.turn_cancelled(session)
        answers = await within(asyncio.gather(*requests[:2]))
        assert answers == [v1.RequestPermissionResponse.cancelled()] * 2
        assert sorted(closed) == ["a", "b"]
        assert not requests[2].done()
        permissions.turn_cancelled(other)
        await within(requests[2])


async def test_decisions_see_the_folded_tool_call(session, lend):
    seen = []
    session.tool_calls["t"] = ToolCallState(
        v1.ToolCallId("t"), "Run tests", "execute", raw_input={"command": "npm test"}
    )

    def ask(question):
        seen.append((question.tool_call.title, question.tool_call.kind, question.command, question.tool_call.status))
        return True

    async with lend(Permissions(ask), sessions=[session]) as client:
        said = v1.ToolCallUpdate(v1.ToolCallId("t"), status="in_progress")
        await client.request(v1.RequestPermissionRequest(session.id, said, ALL))
        unknown = v1.ToolCallUpdate(v1.ToolCallId("new"), title="Unheard of", kind="fetch")
        await client.request(v1.RequestPermissionRequest(session.id, unknown, ALL))
    assert seen == [("Run tests", "execute", "npm test", "in_progress"), ("Unheard of", "fetch", None, "pending")]


# Rules

RULES = """
[[rules]]
answer = "reject"
paths = ["**/.env", "/etc/**"]

[[rules]]
answer = "reject"
commands = ["rm *", "sudo*", "git push*"]

[[rules]]
answer = "allow"
kinds = ["read", "search"]
paths = ["**"]

[[rules]]
answer = "allow"
kinds = ["edit"]
paths = ["src/**", "*.md"]

[[rules]]
answer = "ask"
titles = ["*production*"]

[[rules]]
answer = "allow"
commands = ["npm test", "npm run *", "git diff*", "echo *"]

[[rules]]
answer = "allow"
kinds = ["think"]
agents = ["test*"]
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"kind": "read", "paths": ["a.txt"]}, "allow"),
        ({"kind": "read", "paths": ["deep/er/.env"]}, "reject"),
        ({"kind": "read", "paths": [".env"]}, "reject"),
        ({"kind": "read", "paths": ["a.txt", "/etc/passwd"]}, "reject"),
        ({"kind": "read", "paths": ["src/../../outside"]}, "ask"),
        ({"kind": "read", "paths": ["link/passwd"]}, "reject"),
        ({"kind": "read"}, "ask"),
        ({"kind": "edit", "paths": ["src/deep/a.py", "README.md"]}, "allow"),
        ({"kind": "edit", "paths": ["src/a.py", "setup.py"]}, "ask"),
        ({"kind": "edit", "paths": ["docs/a.md"]}, "ask"),
        ({"kind": "execute", "raw_input": {"command": "npm test"}}, "allow"),
        ({"kind": "execute", "raw_input": {"command": "npm  test && git diff | echo ok"}}, "allow"),
        ({"kind": "execute", "raw_input": {"command": "npm test && curl evil"}}, "ask"),
        ({"kind": "execute", "raw_input": {"command": "npm test; rm -rf /"}}, "reject"),
        ({"kind": "execute", "raw_input": {"command": "npm test & rm -rf /"}}, "reject"),
        ({"kind": "execute", "raw_input": {"command": "npm test\nrm -rf /"}}, "reject"),
        ({"kind": "execute", "raw_input": {"command": "echo $(rm -rf /)"}}, "reject"),
        ({"kind": "execute", "raw_input": {"command": "echo `rm -rf /`"}}, "reject"),
        ({"kind": "execute", "raw_input": {"command": "echo hi > /etc/passwd"}}, "ask"),
        ({"kind": "execute", "raw_input": {"command": "echo 'unclosed"}}, "ask"),
        ({"kind": "execute", "raw_input": {"command": "PATH=. npm test"}}, "ask"),
        ({"kind": "execute", "raw_input": {"command": ["npm", "test"]}}, "allow"),
        ({"kind": "execute", "raw_input": {"command": "npm", "args": ["test"]}}, "allow"),
        ({"kind": "execute", "raw_input": {"command": ["rm", "-rf", "/"]}}, "reject"),
        ({"kind": "execute", "title": "`git diff --stat`"}, "allow"),
        ({"kind": "other", "title": "Deploy to production"}, "ask"),
        ({"kind": "think"}, "allow"),
        ({"kind": "delete", "paths": ["a.txt"]}, "ask"),
    ],
)
def test_the_first_rule_that_fits_answers(project, session, call, expected):
    (project / "link").symlink_to("/etc")
    call["paths"] = [path if path.startswith("/") else project / path for path in call.get("paths", ())]
    assert PermissionPolicy.parse(RULES).decide(asked(session, **call))[0] == expected


def test_a_policy_may_say_what_holds_otherwise(session):
    assert PermissionPolicy.parse('default = "reject"').decide(asked(session)) == ("reject", "default")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules = 3", "[[rules]]"),
        ("[[rules]]", "rule 1: answer is missing"),
        ('[[rules]]\nanswer = "yes"', "allow, reject or ask, got 'yes'"),
        ('[[rules]]\nanswer = "allow"\npath = ["x"]', "unknown key 'path'"),
        ('[[rules]]\nanswer = "allow"\n[[rules]]\nanswer = "allow"\nkinds = "read"', "rule 2: kinds: must be a list"),
        ('[[rules]]\nanswer = "allow"\nkinds = ["write"]', "unknown kind 'write'"),
        ("[[rules", "array declaration"),
        ('defaults = "ask"', "unknown key 'defaults'"),
    ],
)
def test_a_policy_that_makes_no_sense_says_where(tmp_path, text, words):
    (tmp_path / "rules.toml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        PermissionPolicy.load(tmp_path / "rules.toml")
    assert words in str(caught.value)
    assert "rules.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("a b", ["a b"]),
        ("a 'b c' && d||e;f|g&h", ["a b c", "d", "e", "f", "g", "h"]),
        ("echo '&&'", ["echo", ""]),
        ("a $B", None),
        ("a > b", None),
        ("(a)", None),
        ("a \\; b", None),
        ("", None),
        ("&&", None),
    ],
)
def test_a_line_is_taken_apart_or_not_judged(line, parts):
    found = simple_commands(line)
    if line == "echo '&&'":  # quoted separators make more parts, never fewer
        assert found[0] == "echo"
    else:
        assert found == parts


async def test_a_policy_answers_before_anybody_is_asked(session):
    permissions = Permissions(never, policy=PermissionPolicy.parse(RULES))
    assert await answer(permissions, asked(session, kind="execute", raw_input={"command": "npm test"})) == "allow_once"
    assert await answer(permissions, asked(session, kind="execute", raw_input={"command": "rm x"})) == "reject_once"


# Remembered answers


@pytest.fixture
def remembered(tmp_path):
    return RememberedAnswers(tmp_path / "state" / "permissions.json")


async def test_always_holds_for_the_same_program_folder_and_command(tmp_path, project, asking, remembered):
    session = asking(project)
    run = {"kind": "execute", "raw_input": {"command": "npm test"}}
    assert await answer(Permissions(lambda _: "allow_always", remembered=remembered), asked(session, **run)) == (
        "allow_always"
    )
    later = Permissions(lambda _: False, remembered=remembered)
    assert await answer(later, asked(asking(project), **run)) == "allow_once"
    assert await answer(later, asked(asking(project, agent="another"), **run)) == "allow_once"
    assert await answer(later, asked(asking(project, program="/another"), **run)) == "reject_once"
    assert await answer(later, asked(asking(tmp_path), **run)) == "reject_once"
    assert await answer(later, asked(session, kind="execute", raw_input={"command": "npm test; x"})) == "reject_once"


async def test_never_is_remembered_too_and_the_last_word_counts(session, remembered):
    question = asked(session, title="Do it")
    await answer(Permissions(lambda _: "reject_always", remembered=remembered), question)
    assert await answer(Permissions(never, remembered=remembered), question) == "reject_once"
    remembered.remember(question, allowed=True)
    assert await answer(Permissions(never, remembered=remembered), question) == "allow_once"
    remembered.forget()
    assert await answer(Permissions(remembered=remembered), question) == "reject_once"


async def test_editing_always_holds_for_the_files_of_the_project_and_no_others(project, session, remembered):
    first = asked(session, kind="edit", title="Edit a", paths=[project / "a"])
    await answer(Permissions(lambda _: "allow_always", remembered=remembered), first)
    for question, expected in (
        (asked(session, kind="edit", title="Edit b", paths=[project / "sub" / "b"]), True),
        (asked(session, kind="edit", title="Edit c", paths=[project / "c", "/etc/passwd"]), None),
        (asked(session, kind="edit", title="Edit d"), None),
        (asked(session, kind="delete", title="Delete a", paths=[project / "a"]), None),
    ):
        assert remembered.recall(question) is expected


async def test_an_answer_for_every_folder_holds_elsewhere_and_yields_to_one_for_the_folder(session, remembered):
    question = asked(session, kind="execute", raw_input={"command": "npm test"})
    remembered.remember(question, allowed=True, everywhere=True)
    assert [it.folder for it in remembered] == ["*"]
    assert remembered.recall(question) is True
    remembered.remember(question, allowed=False)
    remembered.remember(question, allowed=True, everywhere=True)  # in place of the earlier one
    assert remembered.recall(question) is False
    assert [it.folder for it in remembered] == [str(session.cwd), "*"]


async def test_once_is_not_remembered(session, remembered):
    await answer(Permissions(lambda _: True, remembered=remembered), asked(session, title="Do it"))
    assert list(remembered) == []


async def test_a_rule_that_says_ask_asks_whatever_is_remembered(session, remembered):
    question = asked(session, title="Deploy to production")
    await answer(Permissions(lambda _: "allow_always", remembered=remembered), question)
    permissions = Permissions(lambda _: False, policy=PermissionPolicy.parse(RULES), remembered=remembered)
    assert await answer(permissions, question) == "reject_once"


def test_the_file_is_the_user_s_alone_and_in_their_state_folder(session, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    remembered = RememberedAnswers()
    assert remembered.path == tmp_path / "accord" / "permissions.json"
    remembered.remember(asked(session, title="x"), allowed=True)
    assert {stat.S_IMODE(path.stat().st_mode) for path in remembered.path.parent.iterdir()} == {0o600}
    [entry] = json.loads(remembered.path.read_text())["answers"]
    assert (entry["agent"], entry["what"], entry["allowed"]) == ("tester", "x", True)


async def test_a_file_that_cannot_be_read_is_neither_believed_nor_overwritten(session, remembered, caplog):
    remembered.path.parent.mkdir()
    remembered.path.write_text("{broken")
    permissions = Permissions(lambda _: "allow_always", remembered=remembered)
    assert await answer(permissions, asked(session, title="x")) == "allow_always"
    assert remembered.path.read_text() == "{broken"
    assert "cannot read" in caplog.text


REMEMBER_MANY = """
import sys
sys.path.insert(0, {tests!r})
from tests.services.conftest import Asking
from accord import v1
from accord.services.permission_question import PermissionQuestion
from accord.services.permission_service import RememberedAnswers
from accord.session import ToolCallState

for number in range({first}, {first} + 25):
    question = PermissionQuestion(Asking({cwd!r}), ToolCallState(v1.ToolCallId("t"), str(number)), [])
    RememberedAnswers({path!r}).remember(question, allowed=True)
"""


def test_processes_that_remember_at_once_lose_nothing(project, remembered):
    facts = {"tests": str(Path(__file__).parent), "cwd": str(project), "path": str(remembered.path)}
    sources = [REMEMBER_MANY.format(first=first, **facts) for first in (0, 25, 50)]
    workers = [subprocess.Popen([sys.executable, "-c", source]) for source in sources]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert sorted(int(it.what) for it in remembered) == list(range(75))


# The audit log


async def test_each_decision_is_written_down_with_what_made_it(tmp_path, project, session, remembered):
    log = tmp_path / "log" / "audit.jsonl"
    permissions = Permissions(
        lambda question: question.tool_call.title,
        policy=PermissionPolicy.parse(RULES),
        remembered=remembered,
        audit=log,
    )
    await answer(permissions, asked(session, kind="read", paths=[project / "a"]))
    await answer(permissions, asked(session, title="allow_always"))
    await answer(permissions, asked(session, title="allow_always"))
    await answer(permissions, asked(session, title="bad choice"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(it["answer"], it["by"]) for it in lines] == [
        ("allow_once", "rule 3"),
        ("allow_always", "user"),
        ("allow_once", "remembered"),
        ("reject_once", "failure"),
    ]
    assert lines[0]["paths"] == [str(project / "a")]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("level", "call"),
    [
        ("ask", {"kind": "read", "paths": ["a"]}),
        ("ask", {"kind": "search"}),
        ("ask", {"kind": "think"}),
        ("auto", {"kind": "fetch"}),
        ("auto", {"kind": "read", "paths": ["a", "/etc/passwd"]}),
        ("auto", {"kind": "read", "raw_input": {"command": "cat a"}}),
        ("edit", {"kind": "edit", "paths": ["a"]}),
        ("auto", {"kind": "edit"}),
        ("auto", {"kind": "edit", "paths": ["../b"]}),
        ("auto", {"kind": "edit", "paths": ["a", ".git/config"]}),
        ("auto", {"kind": "edit", "paths": ["deep/.accord/agents.toml"]}),
        ("auto", {"kind": "delete", "paths": ["a"]}),
        ("auto", {"kind": "execute", "title": "ls"}),
        ("auto", {}),
    ],
)
async def test_a_level_allows_what_is_at_most_its_own(session, project, level, call):
    """What is not allowed by the level is asked about."""
    paths = [str(project / path) for path in call.pop("paths", ())]
    question = asked(session, paths=paths, **call)
    assert level_of(question) == level
    for given in LEVELS:
        users = []
        permissions = Permissions(lambda it, users=users: users.append(it), level=given)
        allowed = LEVELS.index(given) >= LEVELS.index(level)
        assert await answer(permissions, question) == ("allow_once" if allowed else "reject_once")
        assert bool(users) is not allowed


async def test_a_link_out_of_the_folders_is_asked_about(session, project):
    (project / "out").symlink_to("/etc")
    assert level_of(asked(session, kind="read", paths=[project / "out/passwd"])) == "auto"


async def test_a_rule_counts_more_than_the_level(session):
    policy = PermissionPolicy([Rule("ask", kinds=["read"]), Rule("reject", kinds=["edit"])])
    permissions = Permissions(lambda _: False, level="auto", policy=policy)
    assert await answer(permissions, asked(session, kind="read")) == "reject_once"
    assert await answer(permissions, asked(session, kind="edit")) == "reject_once"
    assert await answer(permissions, asked(session, kind="execute")) == "allow_once"


async def test_the_level_may_change_between_two_questions(session):
    permissions = Permissions()
    assert await answer(permissions, asked(session)) == "reject_once"
    permissions.level = "auto"
    assert await answer(permissions, asked(session)) == "allow_once"


def test_an_unknown_level_is_explained():
    with pytest.raises(ValueError, match=r"level must be .*ask.*edit.*auto"):
        Permissions(level="edits")
    with pytest.raises(ValueError, match="edit"):
        accord.Client(permissions="edits")


def test_what_was_not_offered_cannot_be_chosen(session):
    with pytest.raises(ValueError, match="'x' was not offered"):
        asked(session).chosen("x")
