"""`accord run` and `accord login`: what their options do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AGENT = str(Path(__file__).with_name("noting_agent.py"))


class Bench:
    """An agent that notes what it is asked, and `accord` run against it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"

    def accord(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        agent = [sys.executable, AGENT, str(self.log)]
        return subprocess.run(
            [sys.executable, "-m", "accord", *arguments, "--", *agent],
            check=False,
            capture_output=True,
            timeout=120,
            cwd=self.folder,
            **{"text": True, **options},
        )

    def noted(self, method: str) -> str:
        return next(line for line in self.log.read_text().splitlines() if line.startswith(method + " "))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    ("allow", "said"),
    [
        ("all", ["read allow_once", "edit allow_once"]),
        ("reads", ["read allow_once", "edit reject_once"]),
        ("none", ["read reject_once", "edit reject_once"]),
    ],
)
def test_allow_says_what_the_agent_may(bench: Bench, allow: str, said: list[str]) -> None:
    done = bench.accord("run", "Hi", "--allow", allow)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, said, "")


def test_mode_options_servers_and_folder_reach_the_session(bench: Bench) -> None:
    (bench.folder / "sub").mkdir()
    servers = {"mcpServers": {"files": {"command": sys.executable, "args": ["-v"], "env": {"A": "1"}}}}
    (bench.folder / "mcp.json").write_text(json.dumps(servers))
    done = bench.accord(
        "run", "Hi", "--mode", "code", "--set", "fast=true", "--cwd", "sub", "--mcp", "mcp.json", "--trace", "wire"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert str(bench.folder / "sub") in bench.noted("session/new")
    assert "'args': ['-v'], 'env': [{'name': 'A', 'value': '1'}]" in bench.noted("session/new")
    assert "'modeId': 'code'" in bench.noted("session/set_mode")
    assert "'value': True" in bench.noted("session/set_config_option")
    assert "session/set_mode" in (bench.folder / "wire").read_text()


def test_a_session_is_gone_on_with(bench: Bench) -> None:
    done = bench.accord("run", "Hi", "--session", "s", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["type"] for event in events] == ["session", "update", "update", "result"]
    assert events[-1] == {"type": "result", "stopReason": "end_turn", "sessionId": "s"}
    assert "'sessionId': 's'" in bench.noted("session/resume")


def test_the_prompt_can_come_from_standard_input(bench: Bench) -> None:
    assert bench.accord("run", "-", input="Grüße", encoding="utf-8").returncode == 0
    assert "Grüße" in bench.noted("session/prompt")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--mode", "fly"], "--mode fly: the agent has no mode 'fly'; it has ask, code"),
        (["--set", "slow=true"], "--set slow=true: the agent has no config option 'slow'; it has fast"),
        (["--set", "fast=perhaps"], "--set fast=perhaps: 'fast' has no value 'perhaps'; it has true, false"),
        (["--set", "fast"], "KEY=VALUE"),
        (["--cwd", "nowhere"], "no such folder"),
        (["--mcp", "nowhere.json"], "nowhere.json"),
        (["--timeout", "-1"], "--timeout"),
    ],
)
def test_wrong_usage_is_said_and_has_its_exit_code(bench: Bench, arguments: list[str], says: str) -> None:
    done = bench.accord("run", "Hi", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a current folder cannot be deleted there")
def test_a_deleted_current_folder_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = f'rmdir "$PWD" && exec "{sys.executable}" -m accord run Hi'
    command = ["/bin/sh", "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=tmp_path / "gone")
    assert (done.returncode, done.stderr) == (2, "accord run: --cwd .: no such folder\n")


def test_debug_shows_where_it_failed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "accord", "--debug", "run", "Hi", "--", "no-such-agent"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "Traceback" in done.stderr
    assert done.returncode == 1


WANTS_A_KEY = """
import json, os, sys
hello = json.loads(sys.stdin.readline())
variables = [{"name": "TEST_KEY"}, {"name": "SITE", "secret": False}]
method = {"type": "env_var", "id": "k", "name": "Key", "vars": variables}
def answer(call, result):
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
answer(hello, {"protocolVersion": 1, "authMethods": [method]})
for line in sys.stdin:
    call = json.loads(line)
    if call.get("method") == "authenticate":
        print(os.environ["TEST_KEY"], os.environ["SITE"], file=open("noted", "w"))
        answer(call, {})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
@pytest.mark.requirement("auth.environment.secrets-hidden", "auth.environment.set-at-start")
def test_a_secret_is_not_seen_while_it_is_typed(tmp_path: Path) -> None:
    import os
    import pty

    (tmp_path / "agent.py").write_text(WANTS_A_KEY)
    command = [sys.executable, "-m", "accord", "login", "--", sys.executable, "agent.py"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, start_new_session=True
    )
    os.close(theirs)
    screen = b""
    for prompt, typed in ((b"TEST_KEY: ", b"hush\n"), (b"SITE: ", b"here\n"), (b"Logged in", b"")):
        while prompt not in screen:
            screen += os.read(ours, 4096)
        os.write(ours, typed)
    assert process.wait(timeout=120) == 0
    os.close(ours)
    assert b"hush" not in screen
    assert b"here" in screen
    assert (tmp_path / "noted").read_text() == "hush here\n"


def test_login_lists_the_ways_and_goes_through_the_only_one(bench: Bench) -> None:
    assert bench.accord("login", "--list").stdout == "web  In the browser\n"
    done = bench.accord("login")
    assert (done.returncode, done.stderr) == (0, "")
    assert "'methodId': 'web'" in bench.noted("authenticate")
    assert bench.accord("login", "--method", "paper").returncode == 1
