"""The notebook runs in a kernel from its first cell to its last, and is stored without outputs."""

import asyncio

import pytest

from tests.examples.conftest import EXAMPLES

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed; requirements/test.txt has it")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed; requirements/test.txt has it")
pytest.importorskip("ipykernel", reason="ipykernel is not installed; requirements/test.txt has it")

NOTEBOOK = EXAMPLES / "notebook" / "agent_in_a_notebook.ipynb"


def test_the_notebook_is_stored_without_outputs():
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    assert [cell for cell in stored.cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)] == []


@pytest.fixture
def run_notebook(tmp_path, monkeypatch):
    """Runs the notebook in a kernel; returns what each code cell shows."""
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))

    def run_notebook() -> dict[str, str]:
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        folder = {"metadata": {"path": str(tmp_path)}}
        asyncio.run(
            nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3", resources=folder).async_execute()
        )
        return {cell.source: "".join(map(shown, cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"}

    return run_notebook


def shown(output) -> str:
    return output.get("text") or output["data"].get("text/markdown") or output["data"]["text/plain"]


def test_the_notebook_shows_what_its_text_says(run_notebook):
    cells = list(run_notebook().values())
    asked, edited, changed, ran, compared, recalled, whole, closed = cells[2:]
    assert asked.startswith("Pleased to meet you, Ada.")
    assert "You allowed it." in edited
    assert "('Edit accord-demo.md', True)" in edited
    assert "edit completed Edit" in changed
    assert "+You allowed it." in changed
    assert "nothing was run" in ran
    assert "('Run ls', False)" in ran
    assert all(f"What is a {word}? -- " in compared for word in ("tool call", "session", "mode"))
    assert "I am a demonstration" not in compared
    assert recalled == "You are Ada."
    assert "> **You:** who am I?" in whole
    assert closed == ""
