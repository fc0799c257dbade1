"""Rules for a tool call that no client was asked about, and for commands that are handed to another shell."""

import pytest

import accord
from accord import v1
from accord.session import ToolCallState

POLICY = accord.PermissionPolicy.parse("""
[[rules]]
answer = "reject"
commands = ["rm *"]

[[rules]]
answer = "reject"
paths = ["**/.env"]

[[rules]]
answer = "allow"
kinds = ["read"]
paths = ["**"]
""")


def judged(cwd, *, command=None, path=None, kind="other"):
    locations = [] if path is None else [v1.ToolCallLocation(path)]
    raw = None if command is None else {"command": command}
    return POLICY.judge(ToolCallState(v1.ToolCallId(""), "", kind, locations=locations, raw_input=raw), cwd=cwd)


@pytest.mark.parametrize(
    "command",
    [
        "rm a",
        "sh -c 'rm a'",
        "cd src && bash -lc 'true; rm a'",
        ["sh", "-e", "-c", "rm a"],
        ["/usr/bin/env", "A=1", "/bin/sh", "-c", "zsh -c 'rm a'"],
        ["sh", "-c", "rm 'a"],
    ],
)
def test_a_rule_that_rejects_finds_a_command_that_is_handed_to_a_shell(tmp_path, command):
    assert judged(tmp_path, command=command, kind="execute") == ("reject", "rule 1")


@pytest.mark.parametrize("command", ["ls", "sh script.sh -c rm", ["sh", "--rcfile", "rm a"], ["echo", "-c", "ls"]])
def test_a_rule_that_rejects_leaves_other_commands_alone(tmp_path, command):
    assert judged(tmp_path, command=command, kind="execute") == ("ask", "default")


def test_a_file_is_judged_from_the_folder_on(tmp_path):
    assert judged(tmp_path, path=".env", kind="read") == ("reject", "rule 2")
    assert judged(tmp_path, path="a/../.env", kind="read") == ("reject", "rule 2")
    assert judged(tmp_path, path="a.txt", kind="read") == ("allow", "rule 3")
    assert judged(tmp_path, path="/elsewhere/a.txt", kind="read") == ("ask", "default")


def test_the_name_of_the_agent_counts_when_it_is_given(tmp_path):
    policy = accord.PermissionPolicy.parse('[[rules]]\nanswer = "reject"\nagents = ["Claude*"]\n')
    call = ToolCallState(v1.ToolCallId(""))
    assert policy.judge(call, cwd=tmp_path, agent="Claude Code") == ("reject", "rule 1")
    assert policy.judge(call, cwd=tmp_path) == ("ask", "default")


def test_a_tool_call_that_is_too_large_is_an_error(tmp_path):
    with pytest.raises(accord.RequestError, match="too many bytes of the command"):
        judged(tmp_path, command="x" * 200_000)


def test_a_diff_is_shown_as_text():
    shown = v1.Diff("a.txt", "one\n2\n", "one\ntwo\n").unified()
    assert shown.splitlines() == ["--- a.txt", "+++ a.txt", "@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    assert v1.Diff("a.txt", "same", "same").unified() == ""
    assert v1.Diff("a.txt", "new").unified().splitlines()[2:] == ["@@ -0,0 +1 @@", "+new"]
