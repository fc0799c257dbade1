"""The tests' own helpers."""

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_helpers_have_names_of_their_own():
    """Each folder's helpers are imported by name alone: of two with one name, the first would stand for both."""
    names = [
        path.name
        for path in TESTS.glob("*/*.py")
        if not path.name.startswith(("test_", "__init__")) and path.name != "conftest.py"
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []
