"""Generated pages are up to date: the tables of modules in the design, and docs/reference."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tool(name: str):
    """A script of `tools`, as a module."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


module_tables, reference = tool("module_tables"), tool("reference")
PAGES = reference.generated()


@pytest.mark.parametrize("page", module_tables.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_s_tables_of_modules_are_up_to_date(page):
    text = page.read_text()
    assert module_tables.updated(text) == text, "run: python tools/module_tables.py"


def test_every_module_has_a_first_line():
    modules = (ROOT / "packages").glob("*/src/**/*.py")
    assert not [path for path in modules if not module_tables.first_line(path)]


def test_every_table_of_modules_has_an_end():
    for page in module_tables.pages():
        text = page.read_text()
        assert text.count("<!-- modules:") == len(module_tables.TABLE.findall(text)), page


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


def test_the_files_that_layout_names_exist():
    """What a newcomer finds there: the ways of a prompt and of an update, and the table "Where is it?"."""
    page = (ROOT / "docs" / "design" / "layout.md").read_text()
    named = re.findall(r"[\w/]+\.py", page[page.index("## The way of") : page.index("## Rooms")])
    sources = [*(ROOT / "packages").glob("*/src"), ROOT / "packages" / "accord" / "src" / "accord"]
    assert len(named) > 15
    assert [it for it in named if not any((source / it).is_file() for source in sources)] == []
