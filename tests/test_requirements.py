"""The requirements are well formed, and the tests that carry them agree with them in both directions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

import pytest

from accord_check.requirements import ALL, REQUIREMENTS, Requirement, requirement
from tests import FOLDERS, ROOT

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
    "rfd-next-edit-suggestions",
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

NOT_OURS = {
    # what only the author of an agent knows; the library says it in its documentation
    "config.order.by-priority": "only the author knows what matters most; options go out in the order of the offers",
    "usage.size-change-sent": "only the author knows when the context has another size; each `turn.usage` is sent",
    "elicitation.mode.own-underscore": "there is no way to make a mode of one's own but to send raw JSON",
    "elicitation.url.no-secrets": "only the author knows what a URL holds; one with a user name in it is refused",
    "elicitation.url.not-signed-in": "only the author knows what a page shows to whoever opens it",
    # what a window does; the library has none
    "config.category.model-settings-near-model": "a matter of layout; `state.config` has every option's category",
    # a proposal of which the library has the types and does not declare the capability
    "mcp.acp.ids-unique": "MCP over ACP is not offered yet",
    "mcp.acp.addressed-by-id": "MCP over ACP is not offered yet",
    "mcp.acp.connection-ids-fresh": "MCP over ACP is not offered yet",
    "mcp.acp.disconnected": "MCP over ACP is not offered yet",
    "mcp.acp.both-ways": "MCP over ACP is not offered yet",
    "mcp.acp.kind-kept": "MCP over ACP is not offered yet",
    "mcp.acp.params-optional": "MCP over ACP is not offered yet",
}
"""Requirements that no test can show here, each with the reason. Every other one is carried by a test."""


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
    for path in (it for folder in FOLDERS for it in sorted(folder.rglob("*.py"))):
        where = path.relative_to(ROOT).as_posix()
        ids, complaints = carried_by(path.read_text(encoding="utf-8"), where)
        wrong += complaints
        for name in ids:
            found.setdefault(name, []).append(where)
    return found, wrong


def disagreements(
    carried: Mapping[str, Iterable[str]], not_ours: Mapping[str, str], requirements: Mapping[str, Requirement]
) -> list[str]:
    """Where tests, table and requirements disagree."""
    shown, left_out, demanded = set(carried), set(not_ours), set(requirements)
    return [
        *(f"{', '.join(carried[it])}: there is no requirement {it!r}" for it in sorted(shown - demanded)),
        *(f"{it!r} is shown by {', '.join(carried[it])}: take it off NOT_OURS" for it in sorted(shown & left_out)),
        *(f"{it!r} is carried by no test" for it in sorted(demanded - shown - left_out)),
        *(f"{it!r} is on NOT_OURS, but no requirement" for it in sorted(left_out - demanded)),
    ]


def test_every_requirement_is_carried_by_a_test_or_has_a_reason_why_none_can():
    found, wrong = all_carried()
    assert [*wrong, *disagreements(found, NOT_OURS, REQUIREMENTS)] == []
    assert all(reason.strip() for reason in NOT_OURS.values())


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
    assert carried_by(
        "from accord_check.requirements import requirement\nrequirement('a.b')\nit.requirement('c.d')"
    ) == (
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


ONE, OTHER = (
    Requirement("a.agent", "agent", "MUST", "overview, X", "does", "agent"),
    Requirement("a.client", "client", "MUST", "overview, X", "does too", "client"),
)


@pytest.mark.parametrize(
    ("shown", "not_ours", "complaint"),
    [
        ({"a.agent"}, set(), "'a.client' is carried by no test"),
        ({"a.agent", "a.client", "a.typo"}, set(), "test_x.py: there is no requirement 'a.typo'"),
        ({"a.agent", "a.client"}, {"a.agent"}, "'a.agent' is shown by test_x.py: take it off NOT_OURS"),
        ({"a.agent"}, {"a.client", "a.typo"}, "'a.typo' is on NOT_OURS, but no requirement"),
    ],
)
def test_the_contract_names_each_disagreement(shown: set[str], not_ours: set[str], complaint: str):
    requirements = {it.id: it for it in (ONE, OTHER)}
    reasons = dict.fromkeys(not_ours, "why")
    assert disagreements({it: ["test_x.py"] for it in shown}, reasons, requirements) == [complaint]


@pytest.mark.parametrize(("shown", "not_ours"), [({"a.agent", "a.client"}, set()), ({"a.agent"}, {"a.client"})])
def test_the_contract_is_silent_when_all_agree(shown: set[str], not_ours: set[str]):
    requirements = {it.id: it for it in (ONE, OTHER)}
    assert disagreements({it: ["test_x.py"] for it in shown}, dict.fromkeys(not_ours, "why"), requirements) == []
