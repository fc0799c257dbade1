"""Tools of the coding agent whose ways differ with the machine and the client."""

import os
import shutil

import pytest

import accord
from accord.project import search
from tests.coder.conftest import call, text_of

pytestmark = pytest.mark.parametrize("api", ["openai"])


@pytest.fixture(params=[True, False], ids=["ripgrep", "without"])
def with_ripgrep(request, monkeypatch, tmp_path):
    """Whether there is a ripgrep: without it, the search path is an empty folder."""
    if request.param and shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    if not request.param:
        monkeypatch.setenv("PATH", os.fspath(tmp_path / "nothing"))
    assert (search.program_file("rg") is not None) == request.param


async def test_lines_are_found_with_ripgrep_and_without(opened, script, model, project, with_ripgrep):
    (project / "inner").mkdir()
    (project / "inner" / "notes.md").write_text("the world\n")
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("world\n")
    script.say(call("search_files", pattern="w.rld"), call("list_files", pattern="*.md"), "Done.")
    async with opened() as session:
        await session.prompt("Look")
        found, listed = (it.content[0].content.text for it in session.state.tool_calls.values())
    assert sorted(found.splitlines()) == ["hello.txt:2:world", "inner/notes.md:1:the world"]
    assert listed == "inner/notes.md"
    assert "inner/notes.md:1:the world" in text_of(model.bodies[-1])


async def test_a_command_runs_where_the_client_lends_no_terminal(opened, script, model):
    script.say(call("run_command", command="echo told; exit 3"), "Done.")
    async with opened(client=accord.Client(), mode="auto") as session:
        assert (await session.prompt("Go")).text == "Done."
    assert "Exit code 3." in text_of(model.bodies[-1])
