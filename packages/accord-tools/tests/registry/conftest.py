"""A registry on this machine, and a user whose `accord` asks it and no other."""

from __future__ import annotations

import sys

import pytest

from accord_tools.registry import Progress
from accord_tools.registry.agent_index import load_index
from accord_tools.registry.install_agent import InstallOptions, install
from tests.cli.conftest import User
from tests.cli.pseudo_terminal import start_terminals
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401
from tests.registry.local_registry import LocalRegistry

DEMO = f"""#!{sys.executable}
import runpy, sys
sys.argv = ["accord", "demo", "--pace", "0"]
runpy.run_module("accord", run_name="__main__")
"""
"""The built-in agent, as a program of its own."""


@pytest.fixture
def registry():
    with LocalRegistry() as made:
        yield made


@pytest.fixture
def user(tmp_path, registry):
    made = User(tmp_path)
    made.environment |= {
        "XDG_DATA_HOME": str(made.home / "data"),
        "XDG_CACHE_HOME": str(made.home / "cache"),
        "npm_config_cache": str(tmp_path / "npm-cache"),
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
        **registry.environment,
    }
    return made


@pytest.fixture
def terminal(user, tmp_path):
    """Starts `accord` at pseudo-terminals, as this user."""
    with start_terminals(tmp_path) as start:
        yield start


@pytest.fixture
def here(registry, tmp_path, monkeypatch):
    """This process as a user of the registry, with folders of its own; gives the folder that has them."""
    for name in ("DATA", "CACHE", "CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name, value in registry.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm-cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    return tmp_path


class Told(Progress):
    """What an installation has told."""

    def __init__(self):
        self.steps, self.notes, self.counts = [], [], []

    def step(self, text):
        self.steps.append(text)

    def note(self, text):
        self.notes.append(text)

    def bytes(self, done, total):
        self.counts.append((done, total))


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def put_in(here, told):
    """Installs an agent of the registry in this process, by its id and options of `InstallOptions`."""

    def run(agent_id, **options):
        index = load_index(fresh=0.0)
        entry = index.find(agent_id)
        return install(entry, index.source_of(entry), InstallOptions(**options), told)

    return run
