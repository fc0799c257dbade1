"""The company's policy between a client and an agent: what is refused, hidden and logged."""

import json
import shlex
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import accord
from tests.examples.conftest import EXAMPLES

AGENT = shlex.join([sys.executable, str(Path(__file__).with_name("obedient_agent.py"))])
KEY = "AKIAABCDEFGHIJKLMNOP"


@pytest.fixture
def guarded(tmp_path):
    """`async with guarded() as session`: a session through the policy; `guarded.asked` has what the user was asked."""
    asked = []

    def allow(question):
        asked.append(question.title)
        return True

    @asynccontextmanager
    async def guarded(*, policy=None, audit=None, versions=(1,)):
        policy = policy or EXAMPLES / "proxies" / "company_policy.toml"
        program = EXAMPLES / "proxies" / "company_policy.py"
        proxy = shlex.join([sys.executable, "-W", "error", *map(str, (program, policy, audit or guarded.audit))])
        chain = [sys.executable, "-m", "accord", "conduct", proxy, AGENT]
        client = accord.Client(files=True, terminals=True, permissions=allow)
        async with accord.connect(chain, client, versions=versions) as remote:
            yield await remote.new_session(guarded.folder)

    guarded.asked = asked
    guarded.audit = tmp_path / "audit.jsonl"
    guarded.folder = tmp_path / "project"
    guarded.folder.mkdir()
    return guarded


async def said(session, prompt):
    return (await session.prompt(prompt)).text


def logged(guarded):
    return [json.loads(line) for line in guarded.audit.read_text().splitlines()]


async def test_files_that_the_policy_names_are_neither_read_nor_written(guarded):
    (guarded.folder / ".env").write_text("PASSWORD=1")
    (guarded.folder / "notes.txt").write_text("hello")
    async with guarded() as session:
        assert (await said(session, "read .env")).startswith("refused: -32011 the company's policy does not allow this")
        assert (await said(session, "read src/../.env")).startswith("refused: -32011")
        assert (await said(session, "write .env x")).startswith("refused: -32011")
        assert (await said(session, "read /etc/hostname")).startswith("refused: -32011")
        assert await said(session, "read notes.txt") == "hello"
        assert await said(session, "write notes.txt bye") == "written"
    assert (guarded.folder / ".env").read_text() == "PASSWORD=1"
    assert (guarded.folder / "notes.txt").read_text() == "bye"


async def test_a_link_to_a_file_that_the_policy_names_is_that_file(guarded):
    (guarded.folder / ".env").write_text("PASSWORD=1")
    (guarded.folder / "harmless.txt").symlink_to(guarded.folder / ".env")
    async with guarded() as session:
        assert (await said(session, "read harmless.txt")).startswith("refused: -32011")


async def test_commands_that_the_policy_names_do_not_run_in_whatever_they_are_wrapped(guarded):
    (guarded.folder / "notes.txt").write_text("hello")
    async with guarded() as session:
        for line in ("rm notes.txt", "true && rm notes.txt", "sh -c 'rm notes.txt'", "echo $(rm notes.txt)"):
            assert (await said(session, f"run {line}")).startswith("refused: -32011"), line
        assert await said(session, "run echo fine") == "fine\n"
    assert (guarded.folder / "notes.txt").exists()


async def test_a_question_is_refused_allowed_or_left_to_the_user(guarded):
    async with guarded() as session:
        assert await said(session, "may git push origin main") == "reject_once"
        assert await said(session, "change .env") == "False"
        assert guarded.asked == []
        assert await said(session, "may make test") == "allow_once"
        assert guarded.asked == ["Run a command"]


async def test_in_version_2_of_the_protocol_questions_are_judged_too(guarded):
    async with guarded(versions=(2,)) as session:
        assert await said(session, "change .env") == "False"
        assert await said(session, "change notes.txt") == "True"
        assert len(guarded.asked) == 1
    assert [line["answer"] for line in logged(guarded)] == ["reject", "ask"]


async def test_secrets_are_hidden_from_the_agent_and_a_write_does_not_destroy_them(guarded):
    (guarded.folder / "settings.txt").write_text(f"key={KEY}")
    async with guarded() as session:
        assert await said(session, f"say {KEY}") == "[secret]"
        assert await said(session, "read settings.txt") == "key=[secret]"
        assert await said(session, "run cat settings.txt") == "key=[secret]"
        assert "ask the user to edit it" in await said(session, "write settings.txt colour=red key=[secret]")
    assert (guarded.folder / "settings.txt").read_text() == f"key={KEY}"
    assert KEY not in guarded.audit.read_text()


async def test_each_decision_is_a_line_of_the_log(guarded):
    (guarded.folder / "notes.txt").write_text("hello")
    async with guarded() as session:
        for prompt in ("read notes.txt", "read .env", "run sudo reboot", f"say {KEY}"):
            await session.prompt(prompt)
        known = session.id
    lines = logged(guarded)
    assert [(line["what"], line["answer"], line["why"]) for line in lines] == [
        ("read", "allow", "rule 3"),
        ("read", "reject", "rule 1"),
        ("run", "reject", "rule 2"),
        ("prompt", "hidden", "secrets"),
    ]
    assert {line["session"] for line in lines} == {known}
    assert lines[2]["subject"] == "sudo reboot"
    assert guarded.audit.stat().st_mode & 0o777 == 0o600


async def test_nothing_is_allowed_while_the_log_cannot_be_written(guarded):
    (guarded.folder / "notes.txt").write_text("hello")
    async with guarded(audit=guarded.folder) as session:
        assert (await said(session, "read notes.txt")).startswith("refused: ")


async def test_a_policy_with_a_mistake_starts_nothing(guarded, tmp_path):
    (tmp_path / "wrong.toml").write_text("[[rules]]\nanswer = 'perhaps'\n")
    with pytest.raises(accord.AccordError, match="answer must be allow, reject or ask, got 'perhaps'"):
        async with guarded(policy=tmp_path / "wrong.toml"):
            pass
