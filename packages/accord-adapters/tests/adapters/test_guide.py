"""The guide's blocks that need a framework that only these tests have; tests/repository has the rest."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[4] / "docs" / "adapters.md"
BLOCK = re.compile(r"^```py\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
PACKAGES = re.compile(r"^(?:from|import) (agents|claude_agent_sdk|langgraph|llama_index)\b", re.MULTILINE)
BLOCKS = {PACKAGES.search(code)[1]: code for code in BLOCK.findall(GUIDE.read_text())}


def test_the_guide_has_a_block_for_each_of_these_frameworks():
    assert sorted(BLOCKS) == ["agents", "claude_agent_sdk", "langgraph", "llama_index"]


@pytest.mark.parametrize("package", [it for it in BLOCKS if find_spec(it)])
def test_a_block_of_the_guide_runs(package, tmp_path):
    script = tmp_path / "block.py"
    script.write_text(BLOCKS[package])
    done = subprocess.run(
        [sys.executable, str(script)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
