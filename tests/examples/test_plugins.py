"""The plug-in of the examples, installed into a folder of its own and used as its users do."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.examples.conftest import EXAMPLES

TALLY = EXAMPLES / "plugins" / "accord-tally"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which the plug-in was installed, without a network."""
    folder = tmp_path_factory.mktemp("installed")
    offline = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder), str(TALLY)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def accord(installed, tmp_path):
    """Runs `accord` where the plug-in is installed; returns what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "HOME": str(tmp_path), "COLUMNS": "100"}

    def accord(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "accord", *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return accord


def test_an_added_command_stands_in_the_help_and_has_its_own(accord):
    assert re.search(r"\n  tally +Count the tools that an agent uses for a prompt\.\n", accord("--help"))
    assert accord("tally", "--help") == accord("help", "tally")
    assert 'accord tally "What does this project do?"' in accord("tally", "--help")


def test_an_added_command_is_completed_and_suggested(accord):
    assert accord("__complete", "ta") == "tally\tCount the tools that an agent uses for a prompt.\n"
    assert accord("__complete", "tally", "Hi", "--fol").startswith("--folder\t")
    assert accord("__complete", "tally", "Hi", "--folder", "") == ":folders\n"
    assert "unknown command 'taly'; did you mean tally?" in accord("taly", code=2)


def test_an_added_command_asks_an_agent(accord):
    demo = [sys.executable, "-m", "accord", "demo", "--pace", "0"]
    assert accord("tally", "/edit notes.txt", "--", *demo) == "TOOL  STATUS  COUNT\nedit  failed  1\n"
    said = accord("tally", "/edit notes.txt", "--json", "--protocol", "2", "--", *demo)
    assert json.loads(said) == [{"kind": "edit", "status": "failed", "count": 1}]
    assert accord("tally", "/plan", "--", *demo, code=1) == "the agent used no tool\n"
    assert "accord tally: --folder must be a folder, got 'nowhere'" in accord(
        "tally", "x", "--folder", "nowhere", code=2
    )
