"""The tables of modules in docs say what the modules' docstrings say."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
specification = importlib.util.spec_from_file_location("module_tables", ROOT / "tools" / "module_tables.py")
module_tables = importlib.util.module_from_spec(specification)
specification.loader.exec_module(module_tables)


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
