"""Each fault of a client of version 2 is found under its own name, in a client that has only this one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from accord_check.client.client_run import check_client
from accord_check.report import Report
from accord_check.trace_judge import report_on_trace
from tests.check.mutants import all_judged, found
from tests.check.test_mutants_of_a_client import HASTY, PATIENT, Mutant, replace

pytestmark = pytest.mark.timeout(300)

CLIENT = Path(__file__).with_name("faulty_v2_client.py")
SECOND = replace(PATIENT, versions=(2,))
SECOND_HASTY = replace(HASTY, versions=(2,))

MUTANTS = {
    "answers nothing unknown": Mutant("usual", {"lint.client.answers"}, SECOND_HASTY),
    "refuses with another code": Mutant("usual", {"~jsonrpc.error.method-not-found", "~extension.request-unknown"}),
    "dies of agent_message": Mutant("usual", {"lint.client.takes-updates"}),
    "dies of terminal_output_chunk": Mutant("usual", {"lint.client.takes-updates"}),
    "dies of plan_update": Mutant("usual", {"lint.client.takes-updates"}),
    "dies of an unknown update": Mutant("usual", {"update.unknown-ignored"}),
    "dies of a bare tool call": Mutant("usual", {"tool.defaults"}),
    "dies of an unknown notification": Mutant("usual", {"~extension.notification-unknown"}),
    "dies of a dollar": Mutant("usual", {"protocol.unknown-dollar-ignored"}),
    "leaves in the work": Mutant("usual", {"~lint.client.stays-in-turn"}),
    "takes the receipt for the end": Mutant("late", {"~lint.client.waits"}),
    "needs capabilities": Mutant("bare", {"~capabilities.client-any-combination"}),
    "speaks any version": Mutant("version", {"~initialize.version.client-leaves"}),
    "dies of unknown capabilities": Mutant("future", {"capabilities.unknown-harmless"}),
    "dies of odd options": Mutant("odd option", {"~config.unknown-type-ignored"}),
    "has a small queue": Mutant("large", {"~lint.client.takes-many-updates"}),
    "dies of noise": Mutant("garbage", {"~lint.client.survives-noise"}),
    "is silent about what is no message": Mutant("garbage", {"~jsonrpc.error.invalid-request"}),
    "dies of late updates": Mutant("cancelled", {"~prompt.cancel.late-updates-taken"}),
    "waits for a dead agent": Mutant("gone", {"~lint.client.ends-after-agent"}, SECOND_HASTY),
}
"""By fault: the scenario that shows it, and what is found; `~` warns."""


async def judged(fault: str, mutant: Mutant) -> Report:
    settings = replace(mutant.settings, versions=(2,))
    return await check_client([sys.executable, str(CLIENT), "{agent}", fault], settings, only=[mutant.scenario])


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    return all_judged(MUTANTS, lambda fault: judged(fault, MUTANTS[fault]), 6)


@pytest.mark.parametrize("fault", MUTANTS)
def test_a_client_of_version_2_with_one_fault_is_told_exactly_that(reports: dict[str, Report], fault: str):
    mutant, report = MUTANTS[fault], reports[fault]
    assert (report.problems, report.blocked) == ([], "")
    assert found(report) == mutant.found, "\n".join(str(finding) for finding in report.findings)


async def test_a_client_of_version_2_without_a_fault_passes_every_scenario(tmp_path: Path):
    client = [sys.executable, str(CLIENT), "{agent}"]
    report = await check_client(client, SECOND, trace=tmp_path / "run.jsonl")
    assert (report.verdict, report.problems, found(report)) == ("conformant", [], set())
    assert (report.versions, report.count("pass") >= 50) == ((2,), True)
    agents = report_on_trace(tmp_path / "run.jsonl", ["agent"])
    assert {(finding.severity, finding.id) for finding in agents.findings} == OURS


OURS = {
    # the scenario of lines that are no message
    ("fail", "stdio.stdout-only-messages"),
    # a version that no client speaks
    ("fail", "initialize.version.agent-answers-latest"),
    # a method that no client can know
    ("warn", "extension.method-underscore"),
    # capabilities that do not exist yet
    ("warn", "types.no-own-fields"),
}
"""The clauses that our agent breaks on purpose."""


async def test_a_client_of_version_1_is_judged_in_its_own_version_only():
    client = [sys.executable, str(Path(__file__).with_name("faulty_client.py")), "{agent}"]
    report = await check_client(client, SECOND, only=["bare", "usual"])
    assert (report.verdict, report.blocked) == ("blocked", "the client does not speak version 2 of the protocol")
    report = await check_client(client, replace(PATIENT, versions=(1, 2)), only=["bare"])
    assert (report.verdict, report.versions) == ("conformant", (1,))
