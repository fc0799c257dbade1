"""The table of the chapter on the coding agent names tests that there are, and each folder's file of tests."""

import re
from pathlib import Path

from tests.named_tests import named

PAGE = Path(__file__).parents[4] / "docs" / "design" / "coding-agent.md"


def test_the_table_names_tests_that_there_are():
    told = set(re.findall(r"`(test_\w+::test_\w+)`", PAGE.read_text()))
    assert told - named("coder") == set()
    assert len(told) > 40


def test_every_file_of_tests_has_a_row():
    files = {name.split("::")[0] for name in named("coder")} - {Path(__file__).stem}
    assert files == {name.split("::")[0] for name in re.findall(r"`(test_\w+::test_\w+)`", PAGE.read_text())}
