"""The tests that the tutorial shows are tests: pytest collects them, they pass, and they fail for a wrong agent."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "tests.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(folder, block):
    (folder / "test_it.py").write_text(block)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=100, cwd=folder)


@pytest.mark.parametrize("block", BLOCKS, ids=["an agent", "a client"])
def test_the_tests_of_the_tutorial_pass(tmp_path, block):
    done = run(tmp_path, block)
    assert f"{block.count('def test_')} passed" in done.stdout, done.stdout + done.stderr


def test_the_tests_of_the_tutorial_fail_for_an_agent_that_does_not_write(tmp_path):
    done = run(tmp_path, BLOCKS[0].replace('write("notes.txt", new)', 'write("notes.txt", old)'))
    assert "1 failed, 1 passed" in done.stdout
