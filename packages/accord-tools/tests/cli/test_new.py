"""`accord new agent` writes a project that works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib

import pytest


@pytest.fixture(params=[(), ("--plain",)], ids=["async", "plain"])
def project(user, request):
    said = user.said("new", "agent", "my-weather", *request.param)
    assert 'accord run "Hello" -- src/my_weather/agent.py' in said
    return user.folder / "my-weather"


def test_the_project_s_own_test_passes(user, project):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"],
        check=False,
        capture_output=True,
        text=True,
        cwd=project,
        env=user.environment | {"PYTHONPATH": "", "PYTEST_ADDOPTS": ""},
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_the_agent_answers_before_and_after_it_is_installed(user, project):
    assert user.said("run", "one two", "--", "src/my_weather/agent.py", cwd=project) == "Your prompt has 2 words.\n"
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    assert declared["name"] == "my-weather"
    module, _, function = declared["scripts"]["my-weather"].partition(":")
    script = f"import sys; sys.path.insert(0, 'src'); from {module} import {function}; {function}()"
    said = user.said("run", "/shout hello", "--", sys.executable, "-c", script, cwd=project)
    assert said == "HELLO\n"


def test_an_agent_of_plain_functions_has_no_async(user):
    user.said("new", "agent", "my-weather", "--plain")
    text = (user.folder / "my-weather" / "src" / "my_weather" / "agent.py").read_text()
    assert "def reply(turn: accord.sync.Turn)" in text
    assert "async" not in text
    assert "await" not in text


def test_the_project_passes_strict_type_checks(user, project):
    pytest.importorskip("pyright", reason="pyright: pip install -r requirements/check.txt")
    (project / "pyrightconfig.json").write_text(
        json.dumps({"include": ["src", "tests"], "extraPaths": ["src"], "typeCheckingMode": "strict"})
    )
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(project)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["a b", "1st", "../up", "import", "", "accord", "a--b", "-x"])
def test_a_name_that_no_package_can_have_is_refused(user, name):
    assert not (user.refused("new", "agent", *(["--"] if name.startswith("-") else []), name)).startswith("Traceback")
    assert list(user.folder.iterdir()) == []


def test_a_folder_that_exists_is_left_alone(user, project):
    (project / "README.md").write_text("mine")
    assert "my-weather exists" in user.refused("new", "agent", "my-weather")
    assert (project / "README.md").read_text() == "mine"
