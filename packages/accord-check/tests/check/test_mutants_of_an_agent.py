"""Each fault that takes a scenario is found under its own name, in an agent that has exactly this fault."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import fromstring

import pytest

from accord.transports import CommandTarget
from accord_check.agent.agent_run import check_agent
from accord_check.agent.settings import FIXTURE, PromptTexts, Settings
from accord_check.checks import ACTIVE_OF_AGENT
from accord_check.report import Report
from accord_check.report_formats import as_html, as_junit, as_markdown
from accord_check.trace_judge import report_on_trace
from tests.check.mutants import all_judged, found

AGENT = Path(__file__).with_name("faulty_agent.py")
PROMPTS = PromptTexts(plain="hello", slow="slow", edit="edit")
PATIENT = Settings(
    prompts=PROMPTS, allow_delete=True, quiet=0.15, answer_within=60, grace=30, stops_within=30, left_within=30
)


class Mutant(NamedTuple):
    scenario: str
    """The scenario that shows it; of several, with ` + ` between them, the last needs what the others leave."""
    found: set[str]
    settings: Settings = PATIENT


def hasty(**changes: float) -> Settings:
    """Settings with other deadlines."""
    return replace(PATIENT, **changes)  # type: ignore[arg-type]


FULLY = replace(PATIENT, profile="full")
"""Settings that ask for all that an agent offers."""

LISTENING = hasty(quiet=1.0)
"""Settings under which what comes late is heard on a busy machine, too."""


MUTANTS = {
    "refuses a version that it does not speak": Mutant("latest", {"lint.initialize.succeeds"}),
    "echoes any version": Mutant("latest", {"initialize.version.agent-answers-latest"}),
    "refuses a client without capabilities": Mutant("bare", {"capabilities.agent-takes-none"}),
    "reads files unasked": Mutant("bare", {"files.read.only-when-advertised"}),
    "takes no text": Mutant("bare", {"prompt.content.agent-takes-text"}),
    "dies in a turn": Mutant("bare", {"lint.stays-alive"}),
    "greets on stdout": Mutant("bare", {"stdio.stdout-only-messages"}),
    "opens no session": Mutant("bare", {"session.agent-baseline"}),
    "dies of bad input": Mutant("garbage", {"lint.survives-bad-input"}),
    "is silent about bad input": Mutant("garbage", {"~jsonrpc.error.parse", "~jsonrpc.error.invalid-request"}),
    "is silent about what is no message": Mutant("garbage", {"~jsonrpc.error.invalid-request"}),
    "calls bad JSON invalid": Mutant("garbage", {"~jsonrpc.error.parse"}),
    "ignores the end of its input": Mutant("ended in a turn", {"~lint.ends-at-end-of-input"}, hasty(grace=0.5)),
    "answers nothing custom": Mutant("healthy", {"extension.request-answered"}, hasty(answer_within=5)),
    "answers nothing unknown": Mutant("healthy", {"lint.request.answered"}, hasty(answer_within=5)),
    "refuses with another code": Mutant("healthy", {"~jsonrpc.error.method-not-found", "~extension.request-unknown"}),
    "answers notifications": Mutant("healthy", {"jsonrpc.notification.never-answered"}, LISTENING),
    "dies of an unknown notification": Mutant("healthy", {"~extension.notification-unknown"}),
    "dies of a dollar": Mutant("healthy", {"protocol.unknown-dollar-ignored"}),
    "is disturbed by _meta": Mutant("healthy", {"meta.nothing-assumed"}),
    "lists nothing without params": Mutant("healthy", {"session.list.needs-no-params"}),
    "lists all folders": Mutant("healthy", {"session.list.empty-list", "session.list.filtered-by-cwd"}),
    "takes any cursor": Mutant("healthy", {"~session.list.cursor-invalid"}),
    "takes no links": Mutant("healthy", {"~prompt.content.agent-takes-links"}),
    "says more after the answer": Mutant(
        "healthy", {"prompt.updates-before-answer", "prompt.cancel.updates-before-answer"}, LISTENING
    ),
    "keeps its mode": Mutant("healthy", {"mode.set.any-time"}),
    "keeps its options": Mutant("healthy", {"config.set.any-time"}),
    "takes any value": Mutant("healthy", {"config.set.invalid-refused"}),
    "does not wait for permission": Mutant("healthy", {"tool.waits-for-permission"}, LISTENING),
    "stops late": Mutant("healthy", {"~prompt.cancel.stops-work"}, hasty(stops_within=1.0)),
    "ends a cancelled turn as done": Mutant("healthy", {"prompt.cancel.answers-cancelled"}),
    "fails when it is cancelled": Mutant("healthy", {"prompt.cancel.errors-hidden"}),
    "never answers a cancelled prompt": Mutant(
        "healthy", {"~prompt.cancel.stops-work", "lint.request.answered"}, hasty(turn_within=2)
    ),
    "is broken by an idle cancel": Mutant("healthy", {"lint.cancel.idle-harmless"}),
    "never answers the prompt of a closed session": Mutant(
        "healthy", {"session.close.cancels-work"}, hasty(answer_within=3)
    ),
    "is broken by a cancel": Mutant("healthy", {"lint.prompt.after-cancel"}),
    "is done when a close arrives": Mutant("healthy", set()),
    "lets work go on after a close": Mutant("healthy", {"session.close.cancels-work"}),
    "loads nothing": Mutant("healthy", {"session.load.replays-everything"}),
    "replays one side": Mutant("healthy", {"session.load.replays-everything"}),
    "goes not on after a load": Mutant("healthy", {"session.load.goes-on"}),
    "forgets at its end": Mutant("healthy + restarted", {"?lint.load.after-restart"}),
    "loads what is not there": Mutant("healthy", {"~lint.load.unknown-refused"}),
    "deletes once": Mutant("healthy", {"~session.delete.idempotent"}),
    "serves one session": Mutant("two sessions", {"lint.sessions.independent"}, FULLY),
    "serves one client": Mutant("second client", {"~lint.second-client"}, FULLY),
    "resumes into nothing": Mutant("opened again", {"session.resume.ready-when-answered"}, FULLY),
    "forks into nothing": Mutant("opened again", {"lint.fork.goes-on"}, FULLY),
    "forgets the source of a fork": Mutant("opened again", {"session.fork.leaves-source"}, FULLY),
    "takes no servers": Mutant("MCP servers", {"mcp.stdio-supported"}, FULLY),
    "wants a type of each server": Mutant("MCP servers", {"mcp.untyped-is-stdio"}, FULLY),
    "starts servers without arguments": Mutant("MCP servers", {"mcp.launched-as-told"}, FULLY),
    "starts one server": Mutant("MCP servers", {"~mcp.all-connected"}, FULLY),
    "refuses servers over HTTP": Mutant("remote MCP server", {"~mcp.http-supported"}, FULLY),
    "forgets the headers": Mutant("remote MCP server", {"mcp.headers-sent"}, FULLY),
    "keeps nothing before its end": Mutant("killed in a turn", {"?lint.load.after-kill"}, FULLY),
    "leaves a process": Mutant("bare", {"~lint.leaves-no-process"}, hasty(left_within=0.5)),
    "leaves a process if it is killed": Mutant(
        "killed in a turn", {"?lint.killed.leaves-no-process"}, replace(FULLY, left_within=0.5)
    ),
}
"""By fault: the scenario that shows it, and what is found; `~` warns, `?` notes."""


async def judged(fault: str, settings: Settings = PATIENT, *only: str) -> Report:
    target = CommandTarget([sys.executable, str(AGENT), fault])
    return await check_agent("faulty", target.dial, settings, only=only)


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    async def judge(fault: str) -> Report:
        mutant = MUTANTS[fault]
        return await judged(fault, mutant.settings, *mutant.scenario.split(" + "))

    return all_judged(MUTANTS, judge, 8)


@pytest.mark.parametrize("fault", MUTANTS)
def test_an_agent_with_one_fault_is_told_exactly_that(reports: dict[str, Report], fault: str):
    mutant, report = MUTANTS[fault], reports[fault]
    assert report.problems == []
    assert found(report) == mutant.found, "\n".join(str(finding) for finding in report.findings)


async def test_an_agent_without_a_fault_passes_every_scenario():
    report = await judged("", FULLY)
    assert (report.verdict, report.problems) == ("conformant", [])
    assert found(report) == set()
    exercised = {outcome.check.id for outcome in report.outcomes if outcome.status != "not exercised"}
    over_http = {name for name in ACTIVE_OF_AGENT if name.startswith(("http.", "lint.http."))}
    proposed = {name for name, check in ACTIVE_OF_AGENT.items() if not check.stable}
    of_v2 = {name for name, check in ACTIVE_OF_AGENT.items() if check.version == 2}
    assert set(ACTIVE_OF_AGENT) - of_v2 - over_http - proposed <= exercised


async def test_a_fixture_that_lets_everything_be_judged_is_conformant():
    report = await judged("", replace(PATIENT, profile="fixture", prompts=FIXTURE))
    assert (report.demanded, report.verdict) == ([], "conformant")


async def test_a_fixture_that_leaves_a_check_without_anything_to_judge_is_not_conformant():
    report = await judged("", replace(PATIENT, profile="fixture", prompts=FIXTURE), "bare")
    assert report.count("fail") == 0
    assert report.verdict == "not conformant"
    assert {"session.load.goes-on", "mcp.launched-as-told"} <= set(report.demanded)
    assert "were not exercised" in report.reason


async def test_an_agent_that_asks_for_a_login_is_blocked_and_has_no_faults():
    report = await judged("asks for a login", PATIENT, "healthy")
    assert (report.verdict, report.exit_code, found(report)) == ("blocked", 3, set())
    assert "--auth METHOD" in report.blocked


async def test_the_scenarios_themselves_break_no_clause_but_those_that_they_mean_to_break(tmp_path: Path):
    """Another checker sends the version as text, and then blames every agent for its refusal."""
    target = CommandTarget([sys.executable, str(AGENT), ""])
    await check_agent("faulty", target.dial, PATIENT, trace=tmp_path / "run.jsonl")
    report = report_on_trace(tmp_path / "run.jsonl", ["client"])
    assert {(finding.severity, finding.id) for finding in report.findings} == {
        # the scenario of input that is no message
        ("fail", "stdio.stdin-only-messages"),
        ("fail", "stdio.no-batches"),
        ("fail", "jsonrpc.answer.id-echoed"),
        # a method that no agent can know
        ("warn", "extension.method-underscore"),
        # a value that no option has
        ("fail", "config.set.offered-only"),
    }


@pytest.mark.parametrize("most", [0, 3])
async def test_no_more_prompts_are_sent_than_the_budget_allows(most: int, tmp_path: Path):
    target = CommandTarget([sys.executable, str(AGENT), ""])
    settings = replace(PATIENT, max_prompts=most)
    report = await check_agent("faulty", target.dial, settings, trace=tmp_path / "run.jsonl")
    assert (tmp_path / "run.jsonl").read_text().count('"session/prompt"') == most
    assert (report.verdict, report.problems, found(report)) == ("conformant", [], set())
    assert report.remarks == [f"the budget of {most} prompts was used up: scenarios that needed more ended early"]


async def test_the_reports_for_ci_name_the_checks_that_a_fixture_has_left_idle():
    report = await judged("", replace(PATIENT, profile="fixture", prompts=FIXTURE), "bare")
    idle = len(report.demanded)
    assert idle > 10
    suites = fromstring(as_junit(report))
    failures = [case for case in suites.iter("testcase") if case.find("failure") is not None]
    assert {case.get("name") for case in failures} == set(report.demanded)
    assert sum(int(suite.get("failures", 0)) for suite in suites) == idle
    for text in (as_markdown(report), as_html(report)):
        assert text.count("was not exercised, and the profile demands it") == idle
