"""The pages are wrapped, and leave out words that earlier pages used as a private dialect."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"<!-- (?:generated|modules):.*?<!-- end -->", re.DOTALL)
WIDTH = 100
REFUSED = re.compile(r"\b(?:nobody|somebody|whoever|anew|that is none|are none)\b", re.IGNORECASE)


def is_checked(page: Path) -> bool:
    """Not what is generated from docstrings and from the names of tests."""
    return page.parent.name != "reference" and page.name != "interop.md"


def lines(page: Path) -> list[str]:
    """The prose of a page: no code, nothing generated."""
    return GENERATED.sub("", FENCED.sub("", page.read_text())).splitlines()


def checked() -> list:
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES if is_checked(page)]


@pytest.mark.parametrize("page", checked())
def test_a_page_is_wrapped(page):
    prose = [line for line in lines(page) if not line.startswith("|")]
    assert not [line for line in prose if len(line) > WIDTH]


@pytest.mark.parametrize("page", checked())
def test_a_page_uses_standard_words(page):
    assert not [line for line in lines(page) if REFUSED.search(line)]
