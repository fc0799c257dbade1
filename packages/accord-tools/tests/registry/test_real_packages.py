"""Agents that others publish are installed by `accord agents install` and answer a turn, with a model made of rules.

The list is made here, of agents of `interop.real_agents`; npm and PyPI are the real ones.
"""

from __future__ import annotations

import json
import os
import shutil

import pytest
from benchmarks.build import Unavailable
from interop.model.server import ModelServer
from interop.real_agents import CODEX, GEMINI, HERMES, QWEN, environment, node_programs, repository

from tests.cli.conftest import User

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]

ENTRIES = {
    "codex-acp": (CODEX, {"npx": {"package": f"{CODEX.package}@{CODEX.version}"}}),
    "gemini": (GEMINI, {"npx": {"package": f"{GEMINI.package}@{GEMINI.version}", "args": ["--acp"]}}),
    "qwen-code": (
        QWEN,
        {"npx": {"package": f"{QWEN.package}@{QWEN.version}", "args": ["--acp", "--auth-type", "openai"]}},
    ),
    "hermes": (HERMES, {"uvx": {"package": f"hermes-agent[acp]=={HERMES.version}", "cmd": "hermes", "args": ["acp"]}}),
}


@pytest.fixture
def user(tmp_path):
    """A user whose registry is a file with these agents, and who has a Node that is new enough."""
    try:
        node = node_programs()
    except Unavailable as missing:
        pytest.skip(str(missing))
    made = User(tmp_path)
    entries = [
        {"id": name, "name": name, "version": agent.version, "description": name, "distribution": distribution}
        for name, (agent, distribution) in ENTRIES.items()
    ]
    (tmp_path / "registry.json").write_text(json.dumps({"version": "1.0.0", "agents": entries}))
    made.environment |= {
        "ACCORD_REGISTRY": str(tmp_path / "registry.json"),
        "XDG_DATA_HOME": str(made.home / "data"),
        "PATH": f"{node}{os.pathsep}{os.environ['PATH']}",
    }
    return made


@pytest.mark.parametrize("name", ENTRIES)
def test_a_published_agent_is_installed_and_answers_a_turn(user, name, tmp_path):
    agent, distribution = ENTRIES[name]
    if "npx" in distribution and shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    installed = user.accord("agents", "install", name, "--yes")
    if installed.returncode and any(word in installed.stderr for word in ("ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT")):
        pytest.skip("it needs a network")
    assert installed.returncode == 0, installed.stderr
    words = user.said("agents", "which", name)
    assert str(user.home / "data" / "accord" / "agents" / name) in words
    assert "npx " not in words
    folder = repository(tmp_path / "work")
    with ModelServer() as model:
        user.environment |= environment(agent, model.url, user.home) | {"PATH": user.environment["PATH"]}
        login = ["--login", agent.login] if agent.login else []
        done = user.accord("run", "Say hello", "-a", name, *login, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
