"""The tables of version 2 say what the official schema says."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[4]
specification = importlib.util.spec_from_file_location("v2_tables", ROOT / "tools" / "v2_tables.py")
v2_tables = importlib.util.module_from_spec(specification)
specification.loader.exec_module(v2_tables)


def test_every_method_and_update_that_is_gone_says_what_does_its_work():
    before, after = v2_tables.facts(1), v2_tables.facts(2)
    gone = {name.rsplit(" (", 1)[0] for name in before["methods"].keys() - after["methods"].keys()}
    variants = before["types"]["SessionUpdate"]["variants"].keys() - after["types"]["SessionUpdate"]["variants"].keys()
    assert v2_tables.REPLACED.keys() == gone | {variant.split("=")[1] for variant in variants}
