"""The programs of docs/coming-from/official-sdk.md: the clients and agents of both packages work."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import acp.schema
import pytest

import accord

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from" / "official-sdk.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
_, OLD_AGENT, NEW_AGENT, OLD_CLIENT, NEW_CLIENT = BLOCKS
ON_OUR_ENGINE = [sys.executable, "-m", "accord_adapters.official_sdk"]


@pytest.mark.parametrize("agent", [OLD_AGENT, NEW_AGENT], ids=["their agent", "our agent"])
@pytest.mark.parametrize("client", [OLD_CLIENT, NEW_CLIENT], ids=["their client", "our client"])
def test_each_client_drives_each_agent(tmp_path, client, agent):
    (tmp_path / "agent.py").write_text(agent)
    (tmp_path / "client.py").write_text(client)
    command = [sys.executable, "client.py", sys.executable, "agent.py"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.stdout == "Deployed.\nend_turn\n", done.stderr


def test_the_programs_of_the_sdk_run_unchanged_on_our_engine(tmp_path):
    (tmp_path / "agent.py").write_text(OLD_AGENT)
    (tmp_path / "client.py").write_text(OLD_CLIENT)
    command = [*ON_OUR_ENGINE, "client.py", *ON_OUR_ENGINE, "agent.py"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.stdout == "Deployed.\nend_turn\n", done.stderr


def test_the_names_of_the_table_of_types_exist():
    table = PAGE.partition("| `acp.schema` | `accord.v1` |\n")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    for theirs, ours in rows:
        for name in re.findall(r"`([A-Z]\w+)`", theirs):
            assert hasattr(acp.schema, name)
        for name in re.findall(r"`([A-Z]\w+)`", ours):
            assert hasattr(accord.v1, name)


@pytest.mark.skipif(version("agent-client-protocol").startswith("0.8."), reason="the page names methods of later ones")
def test_the_methods_of_the_old_package_that_the_page_names_exist():
    there = {*dir(acp), *dir(acp.Agent), *dir(acp.Client), *dir(acp.schema)}
    tables = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name for cell in tables for name in re.findall(r"`(?:conn\.|acp\.)?([a-z]\w+_\w+)", cell)}
    assert named - there - {"model"} == set()
