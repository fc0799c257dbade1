"""docs/updates.md says what the types say."""

import importlib.util
from pathlib import Path

import pytest

import accord
from accord.schema.base import tag_of

ROOT = Path(__file__).parents[4]
specification = importlib.util.spec_from_file_location("update_tables", ROOT / "tools" / "update_tables.py")
update_tables = importlib.util.module_from_spec(specification)
specification.loader.exec_module(update_tables)


def test_the_page_of_updates_is_up_to_date():
    page = update_tables.PAGE.read_text()
    assert update_tables.updated(page) == page, "run python tools/update_tables.py"


@pytest.mark.parametrize("part", update_tables.PARTS)
def test_the_page_of_updates_has_every_table_once(part):
    assert update_tables.PAGE.read_text().count(f"<!-- generated: {part} -->") == 1


def test_every_update_says_what_sends_it():
    assert set(update_tables.SENT_BY) == {tag_of(cls) for cls in update_tables.variants()}


@pytest.mark.parametrize("cls", update_tables.variants(), ids=lambda cls: cls.__name__)
def test_the_page_names_every_field_of_an_update(cls):
    section = update_tables.PAGE.read_text().split(f"### {tag_of(cls)}\n")[1].partition("\n### ")[0]
    for name, wire in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
        assert name == "meta" or f"| `{name}` | `{wire}` |" in section
    assert getattr(accord.v1, cls.__name__) is cls
