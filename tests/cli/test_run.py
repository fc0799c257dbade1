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
        (["--mode", "fly"], "the agent has ask, code"),
        (["--set", "slow=true"], "the agent has fast"),
        (["--set", "fast=perhaps"], "true or false"),
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


def test_debug_shows_where_it_failed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "accord", "--debug", "run", "Hi", "--", "no-such-agent"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "Traceback" in done.stderr
    assert done.returncode == 1


def test_login_lists_the_ways_and_goes_through_the_only_one(bench: Bench) -> None:
    assert bench.accord("login", "--list").stdout == "web  In the browser\n"
    done = bench.accord("login")
    assert (done.returncode, done.stderr) == (0, "")
    assert "'methodId': 'web'" in bench.noted("authenticate")
    assert bench.accord("login", "--method", "paper").returncode == 1
