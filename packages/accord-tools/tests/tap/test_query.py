"""The filter language has one table; the guide, the help and the page show all of it."""

import subprocess
import sys
from pathlib import Path

from accord.trace.query import FILTERS
from accord_tools.inspector.api import summary_of
from accord_tools.inspector.message_rows import Fields
from accord_tools.inspector.trace_index import TraceIndex
from accord_tools.inspector.trace_lines import (
    ANSWER,
    BROKEN,
    ERROR,
    EVENT,
    NOTE,
    NOTIFICATION,
    REQUEST,
    STDERR,
    TraceReader,
)
from tests.tap.traces import write

ROOT = Path(__file__).parents[4]
STATIC = ROOT / "packages/accord-tools/src/accord_tools/inspector/static"


def test_the_help_of_show_has_every_filter_that_works_there():
    command = [sys.executable, "-m", "accord", "trace", "show", "--help"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    for key in FILTERS.values():
        assert (key.examples[0] in text) is not key.is_of_page


def test_the_page_is_told_every_filter(tmp_path):
    reader = TraceReader(write(tmp_path / "wire.jsonl"))
    told = dict(summary_of(TraceIndex(reader))["filters"])
    reader.close()
    assert all(told[", ".join(key.examples)] == key.shows for key in FILTERS.values())


def test_the_page_has_the_same_numbers_for_kinds_and_places():
    script = (STATIC / "kinds.js").read_text()
    places, kinds = (line for line in script.splitlines() if line.startswith("export const ["))
    numbers = {"BROKEN": BROKEN, "REQUEST": REQUEST, "NOTIFICATION": NOTIFICATION, "ANSWER": ANSWER}
    numbers |= {"ERROR": ERROR, "NOTE": NOTE, "STDERR": STDERR, "EVENT": EVENT}
    assert _names(places) == [field.name for field in Fields]
    assert {name: at for at, name in enumerate(_names(kinds))} == numbers


def _names(line):
    return line[line.index("[") + 1 : line.index("]")].split(", ")
