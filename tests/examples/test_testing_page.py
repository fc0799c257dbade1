"""The tests on docs/testing.md are tests: pytest collects them, they pass, and they fail for a wrong agent."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
BLOCKS = [
    block for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "def test_" in block
]


def run(folder, block):
    (folder / "test_it.py").write_text(block)
    (folder / "pytest.ini").write_text(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=100, cwd=folder)


@pytest.mark.parametrize("block", BLOCKS, ids=["an agent", "a client"])
def test_the_tests_of_the_page_pass(tmp_path, block):
    done = run(tmp_path, block)
    assert f"{block.count('def test_')} passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("right", ['write("notes.txt", new)', 'say("Done.")'])
def test_the_tests_of_the_page_fail_for_an_agent_that_does_something_else(tmp_path, right):
    wrong = BLOCKS[0].replace(right, right.replace("new)", "old)").replace("say(", "think("))
    assert wrong != BLOCKS[0]
    assert "1 failed, 1 passed" in run(tmp_path, wrong).stdout
