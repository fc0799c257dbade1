"""The pages of the site before the generator sees them: which there are, and where their links lead."""

import posixpath
import re
import subprocess
import sys

import pytest
from tools import reference
from tools.website import build, error_pages, name_examples, navigation, reference_pages, update_pages
from tools.website.name_examples import examples_of_names
from tools.website.page import FENCED

from accord import errors
from accord_check.requirement_pages import names_of_pages
from accord_tools.cli.command_table import commands_for

LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")


@pytest.fixture(scope="module")
def pages():
    return build.all_pages()


def test_every_public_name_has_a_page(pages):
    names = [it.name for it in reference.public_names()]
    assert [it for it in names if f"reference/{reference_pages.file_of(it)}" not in pages] == []


def test_every_public_name_has_an_example():
    names = [it.name for it in reference.public_names()]
    without = sorted(set(names) - examples_of_names(names).keys())
    assert without == [], "write a block in docs, below the comment <!-- example of: NAME -->"


def test_the_example_of_a_name_without_sync_uses_no_object_of_sync():
    found = examples_of_names(["accord.RemoteAgent", "accord.RemoteSession", "accord.Reply", "accord.sync.Reply"])
    assert [name for name, it in found.items() if "accord.sync" in it.code] == ["accord.sync.Reply"]


def test_every_example_is_of_a_public_name():
    """A comment above a block names it, and so does the table of what gives an object."""
    names = {it.name for it in reference.public_names()}
    assert {name for it in name_examples.examples() for name in it.declared} - names == set()
    assert set(name_examples.GIVEN_BY) - names == set()


@pytest.mark.parametrize("version", [1, 2])
def test_the_page_of_an_update_names_every_field(pages, version):
    for tag, classes in update_pages.kinds().items():
        for name in classes[version].__struct_fields__ if version in classes else ():
            assert name == "meta" or f"\n| `{name}` |" in pages[f"session-updates/{tag}.md"].text, (tag, name)


def test_no_two_pages_differ_only_in_upper_and_lower_case(pages):
    assert len({path.lower() for path in pages}) == len(pages)


def test_every_command_update_and_requirement_has_a_page(pages):
    expected = [f"commands/{it}.md" for it in commands_for()]
    expected += [f"session-updates/{it}.md" for it in update_pages.kinds()]
    expected += [f"requirements/{it}.md" for it in names_of_pages()]
    assert [it for it in expected if it not in pages] == []


def test_a_link_leads_to_a_page_or_a_picture_of_the_site(pages):
    known = {*pages, *build.pictures()}
    led = [(page.path, target) for page in pages.values() for target in LINK.findall(prose(page.text))]
    assert [it for it in led if posixpath.normpath(posixpath.join(posixpath.dirname(it[0]), it[1])) not in known] == []


def prose(text):
    """A page without its code."""
    return re.sub(r"`[^`\n]+`", "", FENCED.sub("", text))


def test_the_navigation_has_every_page_once(pages):
    listed = [path for _, path in navigation.reading_order(navigation.navigation(pages))]
    expected = [path for path in pages if not path.startswith("requirements/") or path == "requirements/index.md"]
    assert sorted(listed) == sorted(expected)


@pytest.mark.parametrize("code", error_pages.CODES, ids=lambda code: str(code.number))
def test_the_program_of_an_error_s_page_shows_that_error(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", error_pages.program(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{code.number} ")


def test_every_error_code_has_a_page():
    numbers = {value for value in vars(errors).values() if isinstance(value, int) and value <= -32000}
    assert {it.number for it in error_pages.CODES} == numbers


def test_an_example_on_the_wire_with_a_wrong_field_is_refused():
    assert update_pages.is_kept({"a": [1]}, {"a": [1], "b": 2})
    assert not update_pages.is_kept({"a": [1], "c": 3}, {"a": [1], "b": 2})
