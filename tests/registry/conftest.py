"""A registry on this machine, and a user whose `accord` asks it and no other."""

from __future__ import annotations

import sys

import pytest

from accord.testing.registry import LocalRegistry
from tests.cli.conftest import User
from tests.cli.pseudo_terminal import start_terminals

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
