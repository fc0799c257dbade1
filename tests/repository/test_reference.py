"""docs/reference says what the signatures and docstrings say."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
specification = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
reference = importlib.util.module_from_spec(specification)
specification.loader.exec_module(reference)

PAGES = reference.generated()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_of_the_reference_is_up_to_date(path):
    assert path.exists(), "run: python tools/reference.py"
    assert path.read_text() == PAGES[path], "run: python tools/reference.py"


def test_the_reference_has_no_page_that_is_not_generated():
    assert set(reference.PAGES.glob("*.md")) == PAGES.keys()


def test_every_public_member_has_a_docstring():
    assert [name for name in reference.missing() if not name.startswith("accord.http.")] == []


def test_every_topic_of_the_reference_has_names():
    used = {reference.topic_of(name) for name in reference.public_names()}
    assert used == set(reference.TOPICS)


def test_a_docstring_that_ends_with_a_program_shows_it_as_code():
    text = "A thing (see below).\n\nit = make()\n\nawait it.work()"
    assert reference.fenced_code(text) == "A thing (see below).\n\n```py\nit = make()\n\nawait it.work()\n```"
