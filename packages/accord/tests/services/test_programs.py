"""What is remembered for an agent holds for its program, whatever another program calls itself."""

import asyncio
import json
import sys

import pytest

import accord
from accord import v1
from accord.http import UrlTarget
from accord.services.permission_question import PermissionQuestion
from accord.session import ToolCallState
from accord.transports import CommandTarget

AGENT = """
import accord

agent = accord.Agent("Claude Code")

@agent.on_prompt
async def run(turn):
    async with turn.tool("x", kind="execute", raw_input={"command": "npm test"}) as tool:
        decision = await tool.ask("allow_always", "reject_once")
    await turn.say(str(decision.allowed))

agent.run()
"""


async def asked_by(command, file, cwd, choice="allow_always"):
    """Whether the user was asked, and what the agent was told."""
    questions = []

    def ask(question):
        questions.append(question.session.agent)
        return question.option(choice)

    permissions = accord.Permissions(ask, remembered=accord.RememberedAnswers(file))
    async with accord.connect(command, client=accord.Client(permissions=permissions)) as remote:
        told = (await (await remote.new_session(cwd)).prompt("go")).text
    return questions, told


async def test_an_answer_for_one_program_does_not_hold_for_another_of_the_same_name(tmp_path, project):
    file = tmp_path / "remembered.json"
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(AGENT)
    bad.write_text(AGENT)
    asked = ["Claude Code"]
    assert await asked_by([sys.executable, str(good)], file, project) == (asked, "True")
    assert await asked_by([sys.executable, str(good)], file, project) == ([], "True")
    assert await asked_by([sys.executable, str(bad)], file, project, "reject_once") == (asked, "False")


async def test_an_answer_for_an_agent_in_memory_does_not_hold_for_a_program_of_its_name(tmp_path, project):
    file, script = tmp_path / "remembered.json", tmp_path / "agent.py"
    script.write_text(AGENT)
    source = {"__name__": "a_module_of_this_program"}
    exec(AGENT.replace("agent.run()", ""), source)
    assert (await asked_by(source["agent"], file, project))[0] == ["Claude Code"]
    assert (await asked_by(source["agent"], file, project))[0] == []
    assert (await asked_by([sys.executable, str(script)], file, project))[0] == ["Claude Code"]


def test_a_program_is_its_real_path_and_all_of_its_arguments(tmp_path):
    script, other = tmp_path / "agent.sh", tmp_path / "other.sh"
    for path in (script, other):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "link").symlink_to("agent.sh")
    known = CommandTarget([str(script), "--acp"]).program
    assert known.startswith(f"{script} ")
    assert CommandTarget(["./agent.sh", "--acp"], cwd=tmp_path).program.split()[0] == str(script)
    assert CommandTarget(["agent.sh", "--acp"], env={"PATH": str(tmp_path)}).program == known
    for command in ([str(script)], [str(script), "--acp", "x"], [str(other), "--acp"], [str(tmp_path / "link")]):
        assert CommandTarget(command).program != known


def test_arguments_are_not_readable_in_what_is_remembered():
    assert "s3cret" not in CommandTarget(["sh", "--token", "s3cret"]).program


def test_a_url_is_its_origin():
    pytest.importorskip("hpack")
    targets = [UrlTarget("https://user:pw@a.example/one?token=x"), UrlTarget("https://a.example:443/two")]
    assert [target.program for target in targets] == ["https://a.example:443"] * 2
    assert UrlTarget("http://a.example/one").program == "http://a.example:80"


async def test_answers_by_name_in_an_older_file_are_ignored(tmp_path, session, caplog):
    file = tmp_path / "remembered.json"
    old = {"agent": "tester", "folder": str(session.cwd), "kind": "other", "what": "x", "allowed": True, "at": ""}
    file.write_text(json.dumps({"version": 1, "answers": [old]}))
    remembered = accord.RememberedAnswers(file)
    question = PermissionQuestion(session, ToolCallState(v1.ToolCallId("t"), title="x"), [])
    assert await asyncio.to_thread(remembered.recall, question) is None
    assert "they are ignored" in caplog.text
    remembered.remember(question, allowed=False)
    assert json.loads(file.read_text())["version"] == 2
    assert remembered.recall(question) is False
