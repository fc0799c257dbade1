"""`--protocol` and ACCORD_PROTOCOL choose the version of the protocol."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import MINE

FIRST_ONLY = "import accord\nagent = accord.Agent('first', versions=(1,))\n@agent.on_prompt\nasync def reply(turn):\n"
WORKING = """
import accord

agent = accord.Agent("working")


@agent.on_prompt
async def reply(turn: accord.Turn) -> None:
    await turn.plan("Look", "Tell")
    async with turn.tool("Read the file", kind="read") as tool:
        allowed = await tool.ask()
        await tool.text("line 1")
    await turn.say("It says " + ("this." if allowed else "nothing."))
"""


@pytest.mark.parametrize(("word", "version"), [("1", 1), ("2", 2), ("auto", 2)])
def test_run_speaks_the_version_that_it_is_told_to(user, word, version):
    user.write("mine.py", MINE)
    lines = [
        json.loads(line)
        for line in user.said("run", "hello", "--json", "--protocol", word, "-a", "mine.py:agent").splitlines()
    ]
    assert (lines[0]["type"], lines[0]["protocolVersion"]) == ("session", version)
    assert lines[0]["agent"]["name"] == "mine"
    assert (lines[-1]["type"], lines[-1]["stopReason"]) == ("result", "end_turn")
    kinds = [line["update"]["sessionUpdate"] for line in lines if line["type"] == "update"]
    assert ("state_update" in kinds) == (version == 2)
    assert "agent_message_chunk" in kinds


def test_auto_takes_version_1_from_an_agent_that_has_no_other(user):
    user.write("first.py", FIRST_ONLY + "    await turn.say('one')\n")
    assert user.said("run", "hi", "--protocol", "auto", "-q", "-a", "first.py") == "one\n"


def test_version_2_alone_is_an_error_that_says_what_the_agent_speaks(user):
    user.write("first.py", FIRST_ONLY + "    await turn.say('one')\n")
    done = user.accord("run", "hi", "--protocol", "2", "-a", "first.py")
    assert done.returncode == 1
    assert "only version 2 was offered" in done.stderr


@pytest.mark.parametrize("version", ["1", "2"])
def test_the_work_is_displayed_in_the_same_way_in_both_versions(user, version):
    user.write("working.py", WORKING)
    options = ["--verbose", "--allow", "auto", "--protocol", version]
    done = user.accord("run", "go", *options, "-a", "working.py")
    assert (done.returncode, done.stdout) == (0, "It says this.\n"), done.stderr
    for words in ("Plan", "Look", "Read the file", "line 1"):
        assert words in done.stderr


def test_the_variable_is_the_default_and_the_option_counts_more(user):
    user.write("mine.py", MINE)
    user.environment["ACCORD_PROTOCOL"] = "2"
    assert json.loads(user.said("info", "--json", "mine.py:agent"))["protocolVersion"] == 2
    assert json.loads(user.said("info", "--json", "--protocol", "1", "mine.py:agent"))["protocolVersion"] == 1
    assert "version 2" in user.said("info", "mine.py:agent")


@pytest.mark.parametrize("command", [("run", "hi"), ("info",)])
def test_an_unknown_word_of_the_variable_is_wrong_usage(user, command):
    user.environment["ACCORD_PROTOCOL"] = "v3"
    assert "ACCORD_PROTOCOL must be auto, 1, 2 or empty, got 'v3'" in user.refused(*command)
