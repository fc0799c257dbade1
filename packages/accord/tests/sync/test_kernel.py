"""Accord in a real Jupyter kernel: with `await` in cells, and without."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sync.test_programs import is_gone
from tests.waiting import wait_until

pytest.importorskip("ipykernel", reason="ipykernel is not installed; requirements/test.txt has it")
pytest.importorskip("jupyter_client", reason="jupyter_client is not installed; requirements/test.txt has it")

RUN_CELLS = Path(__file__).with_name("run_cells.py")


@pytest.fixture
def run_cells(tmp_path, monkeypatch):
    """Runs cells in a kernel of their own; returns the outputs of each."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))

    def run_cells(*cells):
        file = tmp_path / "cells.json"
        file.write_text(json.dumps(cells))
        command = [sys.executable, str(RUN_CELLS), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run_cells


def test_an_agent_is_used_over_several_cells_and_shown_as_markdown(run_cells, quick_agent):
    agent = quick_agent()
    outputs = run_cells(
        f"import accord\nremote = await accord.open({agent.command!r})",
        "session = await remote.new_session('/')",
        "await session.prompt('say **hello** <b>')",
        "session",
        "await remote.close()",
    )
    assert outputs[:2] == [[], []]
    assert outputs[2][0]["text/markdown"] == "**hello** &lt;b> \n"
    assert "> **You:** say" in outputs[3][0]["text/markdown"]
    assert outputs[4] == []
    assert is_gone(agent.pid)


def test_a_kernel_that_ends_leaves_no_agent_that_was_opened(run_cells, quick_agent):
    agents = [quick_agent(), quick_agent()]
    run_cells(
        f"import accord\nremote = await accord.open({agents[0].command!r})\nsession = await remote.new_session('/')",
        f"other = accord.sync.open({agents[1].command!r})",
    )
    for agent in agents:
        wait_until(lambda agent=agent: is_gone(agent.pid))


def test_cells_without_await_ask_the_user_and_are_stopped(run_cells, quick_agent):
    agent = quick_agent()
    outputs = run_cells(
        f"""
import accord
client = accord.Client(permissions=lambda question: input(question.tool_call.title) == "y")
remote = accord.sync.open({agent.command!r}, client)
session = remote.new_session("/")
""",
        "session.prompt('ask').outcome()",
        f"# interrupt after {agent.file} prompt wait\nsession.prompt('wait').text",
        "print(session.prompt('say still here').text)",
        "remote.close()",
    )
    assert outputs[1][0]["text/markdown"].endswith("\n\nyes\n")
    assert outputs[2] == [{"error": "KeyboardInterrupt"}]
    assert outputs[3][0]["text"] == "still here \n"
    assert "cancelled" in agent.notes
    assert is_gone(agent.pid)
