"""Public names only grow: what a released version had is still there, or stands in the table of removed names."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FROZEN = sorted((ROOT / "tests" / "packaging" / "api").glob("*.json"))
POLICIES = (ROOT / "docs" / "policies.md").read_text()

specification = importlib.util.spec_from_file_location("public_api", ROOT / "tools" / "public_api.py")
public_api = importlib.util.module_from_spec(specification)
specification.loader.exec_module(public_api)


@pytest.fixture(scope="module")
def now():
    return public_api.public_api()


@pytest.mark.parametrize("frozen", [pytest.param(path, id=path.stem) for path in FROZEN])
def test_what_a_released_version_had_is_still_there(frozen, now):
    gone = set(public_api.removed(json.loads(frozen.read_text()), now))
    assert gone - public_api.allowed(POLICIES) == set(), (
        "deprecate these names and parameters instead, as docs/policies.md says, or, for a new version that may break "
        "things, add a row for each to the table of docs/policies.md"
    )


def test_a_name_in_the_table_of_removed_names_has_gone(now):
    frozen = [json.loads(path.read_text()) for path in FROZEN]
    gone = {name for before in frozen for name in public_api.removed(before, now)}
    assert public_api.allowed(POLICIES) - gone == set()


def test_the_lists_have_names_parameters_extras_commands_and_options(now):
    assert now["accord.RemoteSession.prompt"].startswith("self, ")
    assert "timeout=" in now["accord.connect"].split(", ")
    assert {"accord.Agent", "accord.http.serve", "accord.sync.open", "accord.v1.ToolCall", "accord[http]"} <= set(now)
    assert {"accord run", "accord run --allow", "accord agents add", "accord.errors"} - set(now) == {"accord.errors"}


@pytest.mark.parametrize(
    ("before", "after", "gone"),
    [
        ("a, b=", "a, b=, c=", []),
        ("a, *, b=", "a, *, c=, b=", []),
        ("a, *, b", "a, *, b=", []),
        ("a, *, b=", "a, b=", []),
        ("", "a=", []),
        ("a", "", ["a"]),
        ("a, b=", "a", ["b"]),
        ("a, b", "b, a", ["a", "b"]),
        ("a, *, b=", "a, *", ["b"]),
        ("a=", "a", ["a"]),
        ("a", "a, b", ["b"]),
        ("a, *, b=", "a, *, b", ["b"]),
        ("a, b=", "a, *, b=", ["b"]),
        ("*values", "values", ["*values", "values"]),
    ],
)
def test_a_parameter_that_went_moved_or_is_demanded_now_is_found(before, after, gone):
    assert list(public_api.changed(before, after)) == gone


def test_a_name_that_went_is_found():
    assert list(public_api.removed({"accord.a": "x", "accord.b": None}, {"accord.a": ""})) == ["accord.a x", "accord.b"]


def test_the_table_of_a_page_allows_what_it_names():
    page = "| name | gone in | instead |\n|---|---|---|\n| `accord.connect cwd` | 0.3.0 | `folder` |\n"
    assert public_api.allowed(page) == {"accord.connect cwd"}
