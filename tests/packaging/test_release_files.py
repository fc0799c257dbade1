"""What a release has beside its distributions: the bill of materials, and the workflows that make it."""

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import accord
from tests.packaging.building import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


@pytest.fixture(scope="module")
def tool():
    """tools/bill_of_materials.py."""
    if importlib.util.find_spec("cyclonedx") is None:
        pytest.skip("cyclonedx-python-lib is not installed: requirements/release.txt has it")
    path = ROOT / "tools" / "bill_of_materials.py"
    specification = importlib.util.spec_from_file_location("bill_of_materials", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.release
def test_the_bill_of_materials_is_valid_and_the_same_each_time(tool, built):
    folder = built[0].parent
    assert tool.main([str(folder)]) == 0
    document = (folder / tool.NAME).read_text()
    assert tool.problems(document) == ""
    assert tool.bill_of_materials(sorted(built[1::2])) == document


@pytest.mark.release
def test_the_bill_of_materials_names_what_the_core_and_the_extras_install(tool, built):
    told = json.loads(tool.bill_of_materials(built[1::2]))
    scopes = {it["name"]: it["scope"] for it in told["components"]}
    assert {name for name, scope in scopes.items() if scope == "required"} == {"accord", "msgspec"}
    assert {"httptools", "websockets", "textual", "mcp", "langgraph"} <= set(scopes)
    itself = told["metadata"]["component"]
    assert (itself["name"], itself["version"]) == ("accord", accord.__version__)
    hashes = {it["name"]: it["hashes"] for it in told["components"] if "hashes" in it}
    wheels = {tool.metadata(it)["Name"]: [{"alg": "SHA-256", "content": tool.digest(it)}] for it in built[1::2]}
    assert hashes == wheels


@pytest.mark.release
def test_a_document_that_breaks_the_schema_is_found(tool, built):
    document = json.loads(tool.bill_of_materials(built[1::2]))
    document["components"][0]["scope"] = "perhaps"
    assert "perhaps" in tool.problems(json.dumps(document))


@pytest.mark.release
def test_the_workflows_pass_actionlint():
    if shutil.which("go") is None:
        pytest.skip("actionlint needs Go")
    done = subprocess.run(["go", "run", ACTIONLINT, *WORKFLOWS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("workflow", [pytest.param(path, id=path.name) for path in WORKFLOWS])
def test_every_action_is_pinned_to_a_commit_and_names_its_version(workflow):
    used = re.findall(r"uses: (.+)", workflow.read_text())
    assert used
    assert [it for it in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)+", it)] == []


@pytest.mark.parametrize("workflow", [pytest.param(path, id=path.name) for path in WORKFLOWS])
def test_a_workflow_uses_no_stored_secret_and_keeps_no_token_in_the_checkout(workflow):
    text = workflow.read_text()
    assert "secrets." not in text
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")


@pytest.mark.parametrize("workflow", [pytest.param(path, id=path.name) for path in WORKFLOWS])
def test_a_workflow_runs_only_targets_and_files_that_exist(workflow):
    text, makefile = workflow.read_text(), (ROOT / "Makefile").read_text()
    targets = re.findall(r"\bmake ([\w-]+)", text)
    assert [it for it in targets if not re.search(rf"^{it}:", makefile, re.MULTILINE)] == []
    files = re.findall(r"(?<![\w./-])(?:packages|tests|tools|examples|requirements)/[\w./-]+", text)
    assert files
    assert [it for it in files if not Path(ROOT, it).exists()] == []
