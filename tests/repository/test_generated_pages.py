"""Generated pages are up to date: docs/reference, and the page of modules that the site makes."""

import importlib.util
import re
from pathlib import Path

import pytest
from tools.website.module_pages import first_line

ROOT = Path(__file__).parents[2]


def tool(name: str):
    """A script of `tools`, as a module."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


reference = tool("reference")
PAGES = reference.generated()
FOLDERS = ("packages", "tests", "tools", "benchmarks", "interop", "examples")


def test_every_module_has_a_first_line():
    modules = (ROOT / "packages").glob("*/src/**/*.py")
    assert not [path for path in modules if not first_line(path)]


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


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "design").glob("*.md")), ids=lambda path: path.name)
def test_the_files_that_the_design_names_exist(page):
    """A page may leave out the first folders of a path."""
    named = re.findall(r"[\w/-]+\.py\b", page.read_text())
    files = [f"/{it.relative_to(ROOT)}" for folder in FOLDERS for it in (ROOT / folder).rglob("*.py")]
    assert [it for it in named if not any(file.endswith(f"/{it}") for file in files)] == []
