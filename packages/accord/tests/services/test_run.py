"""`accord run` lends what `--allow` says, and the user where somebody sits at the terminal."""

import json
import os
import subprocess
import sys

import pytest

ACCORD = [sys.executable, "-m", "accord", "run"]
TELLER = """
import accord
agent = accord.Agent("teller")

@agent.on_prompt
async def prompt(turn):
    client = turn.client
    if turn.text == "servers":
        await turn.say(str([server.name for server in turn.session.mcp_servers]))
    else:
        await turn.say(str((client.can_read_files, client.can_write_files, client.can_run_commands)))

agent.run()
"""
AT_A_TERMINAL = ["/bin/sh", "-c", 'exec "$@" <"$0" 2>"$0"']  # who opens a terminal first has it for its own


@pytest.fixture
def teller(tmp_path):
    (tmp_path / "teller.py").write_text(TELLER)
    return [sys.executable, str(tmp_path / "teller.py")]


def run(project, *options):
    done = subprocess.run(
        [*ACCORD, "--cwd", str(project), *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout, done.stderr, done.returncode


@pytest.mark.parametrize(
    ("allow", "lent"),
    [
        ("auto", (True, True, True)),
        ("none", (False,) * 3),
        (None, (True,) * 3),
    ],
)
def test_what_is_allowed_is_lent(project, teller, allow, lent):
    shown, errors, code = run(project, "x", *(["--allow", allow] if allow else []), "--", *teller)
    assert (shown.strip(), errors, code) == (str(lent), "", 0)


def test_commands_run_where_all_is_allowed(project):
    shown, _, code = run(project, "/run echo from the command", "--allow", "auto")
    assert "from the command" in shown
    assert code == 0


def test_without_a_terminal_what_needs_a_question_is_refused(project):
    done = subprocess.run(
        [*ACCORD, "--cwd", str(project), "/run echo hi", "--allow", "ask"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
        check=False,
    )
    assert "accord run: refused (execute) " in done.stderr
    assert "--allow auto, or a rule of --policy FILE, would allow it" in done.stderr
    assert done.returncode == 0


def test_mcp_servers_that_the_agent_cannot_use_are_named_and_left_out(project, tmp_path, teller):
    servers = {"one": {"command": "sh"}, "two": {"type": "sse", "url": "https://example.com"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    shown, errors, code = run(project, "servers", "--mcp", str(tmp_path / "mcp.json"), "--", *teller)
    usable = ["one", "two"] if errors == "" else ["one"]  # an agent of ours takes more with the extra `mcp`
    assert errors in ("", "accord run: MCP server two not used: the agent does not support its transport\n")
    assert (shown.strip(), code) == (str(usable), 0)


@pytest.mark.parametrize(
    ("prompt", "dialogue", "said"),
    [
        ("/form", [("Name", "Ada"), ("Colour", "2"), ("Cups", ""), ("protocols", "y")], "You are Ada, prefer green"),
        ("/url", [("Open it?", "n")], "Then not."),
    ],
)
def test_the_user_at_the_terminal_is_asked(project, prompt, dialogue, said):
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*AT_A_TERMINAL, os.ttyname(theirs), *ACCORD, "--cwd", str(project), prompt],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        shown = ""
        for question, answer in dialogue:
            while question not in shown:
                shown += os.read(ours, 65_536).decode()
            shown = ""
            os.write(ours, f"{answer}\n".encode())
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(ours)
        os.close(theirs)
    assert said in output.decode()
    assert process.returncode == 0
