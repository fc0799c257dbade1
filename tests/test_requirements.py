"""The requirements are well formed, and the tests that carry them agree with them in both directions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from accord.requirements import ALL, REQUIREMENTS, Requirement, requirement

TESTS = Path(__file__).parent

PAGES = {
    "agent-plan",
    "authentication",
    "cancellation",
    "content",
    "extensibility",
    "file-system",
    "initialization",
    "json-rpc",
    "overview",
    "prompt-turn",
    "schema",
    "session-config-options",
    "session-delete",
    "session-list",
    "session-modes",
    "session-setup",
    "slash-commands",
    "terminals",
    "tool-calls",
    "transports",
    "rfd-additional-directories",
    "rfd-auth-methods",
    "rfd-boolean-config-option",
    "rfd-custom-llm-endpoint",
    "rfd-elicitation",
    "rfd-end-turn-token-usage",
    "rfd-mcp-over-acp",
    "rfd-message-id",
    "rfd-plan-operations",
    "rfd-request-cancellation",
    "rfd-session-config-options",
    "rfd-session-fork",
    "rfd-session-info-update",
    "rfd-session-list",
    "rfd-session-usage",
    "rfd-streamable-http-websocket-transport",
}

OWNERS = {
    "agent": {"agent"},
    "client": {"client"},
    "host": {"client", "both"},
    "engine": {"agent", "client", "both", "transport"},
    "http": {"agent", "client", "transport"},
}
"""Which sides can owe something in each layer."""

NOT_YET_SHOWN: dict[str, set[str]] = {}
"""Requirements of the engine that no test carries yet, by the part whose tests will: it knows what a turn is.

The test that comes to show one takes it off this table.
"""


def test_every_id_is_used_once():
    assert len(REQUIREMENTS) == len(ALL)


@pytest.mark.parametrize("entry", ALL, ids=lambda it: it.id)
def test_an_entry_is_well_formed(entry: Requirement):
    word = r"[a-z0-9]+(-[a-z0-9]+)*"
    assert re.fullmatch(rf"{word}(\.{word})+", entry.id)
    assert entry.level in {"MUST", "SHOULD", "MAY"}
    assert entry.of in OWNERS[entry.layer]
    page, _, heading = entry.page.partition(", ")
    assert page in PAGES
    assert heading.strip() == heading != ""
    assert entry.stable or page.startswith("rfd-"), "only a proposal's page can hold what is not stable"
    assert 0 < len(entry.clause) <= 160
    assert entry.clause.isprintable(), "a clause is one line"
    assert entry.clause[0].islower(), "a clause reads on from the side that owes it"
    assert not entry.clause.endswith(".")


def test_no_two_entries_demand_the_same():
    assert len({(it.of, it.clause) for it in ALL}) == len(ALL)


def test_every_page_is_read():
    assert {it.page.partition(", ")[0] for it in ALL} == PAGES


def test_a_requirement_is_found_by_its_id():
    assert requirement("stdio.no-newline-inside") is REQUIREMENTS["stdio.no-newline-inside"]


def test_an_unknown_id_is_named_in_the_error():
    with pytest.raises(KeyError, match=r"no\.such"):
        requirement("no.such")


def marks(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Every `pytest.mark.requirement` (or `mark.requirement`) in a piece of source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "requirement":
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if name == "mark":
                yield node


def places(tree: ast.Module) -> Iterator[ast.expr]:
    """Every expression that pytest reads marks of tests from."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
                yield from node.decorator_list
            case ast.ClassDef() if node.name.startswith("Test"):
                yield from node.decorator_list
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                yield value
            case ast.AnnAssign(target=ast.Name(id="pytestmark"), value=ast.expr() as value):
                yield value
            case ast.Call(func=ast.Attribute(attr="param") | ast.Name(id="param"), keywords=keywords):
                yield from (it.value for it in keywords if it.arg == "marks")
            case _:
                pass


def carried_by(source: str, where: str = "") -> tuple[set[str], list[str]]:
    """The ids that a test file carries, and what is wrong with how it does."""
    tree = ast.parse(source)
    on_tests = {id(mark) for place in places(tree) for mark in marks(place)}
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    ids: set[str] = set()
    wrong: list[str] = []
    for mark in marks(tree):
        line = f"{where}:{mark.lineno}"
        call = calls.get(id(mark))
        if call is None or not call.args or call.keywords:
            wrong.append(f"{line}: requirement(...) takes ids, one or more")
            continue
        if id(mark) not in on_tests:
            wrong.append(f"{line}: requirement(...) marks no test here")
        for argument in call.args:
            match argument:
                case ast.Constant(value=str(name)):
                    ids.add(name)
                case _:
                    wrong.append(f"{line}: an id is written out, so that it can be found")
    return ids, wrong


def all_carried() -> tuple[dict[str, list[str]], list[str]]:
    """Every id that any test carries with the files that do, and what is wrong."""
    found: dict[str, list[str]] = {}
    wrong: list[str] = []
    for path in sorted(TESTS.rglob("*.py")):
        where = path.relative_to(TESTS).as_posix()
        ids, complaints = carried_by(path.read_text(encoding="utf-8"), where)
        wrong += complaints
        for name in ids:
            found.setdefault(name, []).append(where)
    return found, wrong


def disagreements(
    carried: Mapping[str, Iterable[str]], not_yet_shown: set[str], requirements: Mapping[str, Requirement]
) -> list[str]:
    """Where tests, table and requirements disagree."""
    engine = {name for name, it in requirements.items() if it.layer == "engine"}
    shown = set(carried)
    return [
        *(f"{', '.join(carried[it])}: there is no requirement {it!r}" for it in sorted(shown - set(requirements))),
        *(
            f"{it!r} is shown by {', '.join(carried[it])}: take it off NOT_YET_SHOWN"
            for it in sorted(shown & not_yet_shown)
        ),
        *(f"{it!r} is carried by no test" for it in sorted(engine - shown - not_yet_shown)),
        *(f"{it!r} is on NOT_YET_SHOWN, but no requirement of the engine" for it in sorted(not_yet_shown - engine)),
    ]


def test_what_the_tests_carry_exists_and_what_the_engine_owes_is_carried():
    found, wrong = all_carried()
    assert [*wrong, *disagreements(found, set().union(*NOT_YET_SHOWN.values()), REQUIREMENTS)] == []


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.requirement('a.b', 'c.d')\ndef test_x(): ...",
        "@pytest.mark.requirement('a.b')\n@mark.requirement('c.d')\nasync def test_x(): ...",
        "pytestmark = pytest.mark.requirement('a.b', 'c.d')",
        "pytestmark = [pytest.mark.requirement('a.b'), pytest.mark.requirement('c.d'), pytest.mark.slow]",
        "pytestmark: list[Mark] = [pytest.mark.requirement('a.b', 'c.d')]",
        "class TestX:\n pytestmark = mark.requirement('a.b')\n @mark.requirement('c.d')\n def test_x(self): ...",
        "@pytest.mark.requirement('a.b', 'c.d')\nclass TestX: ...",
        "@mark.parametrize('x', [pytest.param(1, marks=mark.requirement('a.b', 'c.d'))])\ndef test_x(x): ...",
        "CASES = [param(1, marks=[mark.requirement('a.b')]), pytest.param(2, marks=(mark.requirement('c.d'),))]",
    ],
)
def test_ids_are_found_wherever_a_test_can_carry_them(source: str):
    assert carried_by(source) == ({"a.b", "c.d"}, [])


def test_what_only_looks_like_a_mark_is_no_mark():
    assert carried_by("from accord.requirements import requirement\nrequirement('a.b')\nit.requirement('c.d')") == (
        set(),
        [],
    )


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.requirement\ndef test_x(): ...",
        "@pytest.mark.requirement()\ndef test_x(): ...",
        "@pytest.mark.requirement(ID)\ndef test_x(): ...",
        "@pytest.mark.requirement(*IDS)\ndef test_x(): ...",
        "@pytest.mark.requirement(ids='a.b')\ndef test_x(): ...",
        "@pytest.mark.requirement('a.b')\ndef helper(): ...",
        "shows = pytest.mark.requirement",
    ],
)
def test_a_mark_that_hides_its_ids_or_marks_no_test_is_refused(source: str):
    assert carried_by(source)[1]


ENGINE, OTHER = (
    Requirement("a.engine", "both", "MUST", "overview, X", "does", "engine"),
    Requirement("a.client", "client", "MUST", "overview, X", "does", "client"),
)


@pytest.mark.parametrize(
    ("shown", "not_yet_shown", "complaint"),
    [
        (set(), set(), "'a.engine' is carried by no test"),
        ({"a.engine", "a.typo"}, set(), "test_x.py: there is no requirement 'a.typo'"),
        ({"a.engine"}, {"a.engine"}, "'a.engine' is shown by test_x.py: take it off NOT_YET_SHOWN"),
        ({"a.engine"}, {"a.client"}, "'a.client' is on NOT_YET_SHOWN, but no requirement of the engine"),
        ({"a.engine"}, {"a.typo"}, "'a.typo' is on NOT_YET_SHOWN, but no requirement of the engine"),
    ],
)
def test_the_contract_names_each_disagreement(shown: set[str], not_yet_shown: set[str], complaint: str):
    requirements = {it.id: it for it in (ENGINE, OTHER)}
    assert disagreements({it: ["test_x.py"] for it in shown}, not_yet_shown, requirements) == [complaint]


@pytest.mark.parametrize(
    ("shown", "not_yet_shown"), [({"a.engine"}, set()), (set(), {"a.engine"}), ({"a.engine", "a.client"}, set())]
)
def test_the_contract_is_silent_when_all_agree(shown: set[str], not_yet_shown: set[str]):
    requirements = {it.id: it for it in (ENGINE, OTHER)}
    assert disagreements({it: ["test_x.py"] for it in shown}, not_yet_shown, requirements) == []
