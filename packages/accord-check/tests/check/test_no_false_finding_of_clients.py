"""Our own clients, judged: every finding is true, by the clause that stands beside it.

A change here is a review: look at the frames, and at the page, before the table is changed.
"""

from __future__ import annotations

import asyncio
import shlex
import sys

import pytest

from accord_check.client.client_run import check_client
from accord_check.client.scenario_run import ClientSettings
from accord_check.report import Report

ACCORD = [sys.executable, "-m", "accord"]
PLAIN_CHAT = f'echo hello | {shlex.join(ACCORD)} chat --plain --allow auto -- "$ACCORD_CHECK_AGENT"'

CLIENTS: dict[str, tuple[list[str], list[tuple[str, str, str]]]] = {
    "run": ([*ACCORD, "run", "--allow", "auto", "hello", "--", "{agent}"], []),
    "run that allows nothing": ([*ACCORD, "run", "hello", "--", "{agent}"], []),
    "plain chat": (["sh", "-c", PLAIN_CHAT], []),
}
"""By name: the command, and the reviewed findings."""

PATIENT = ClientSettings(answer_within=60, asks_within=20, end_within=20)


async def _all_judged() -> dict[str, Report]:
    async def one(name: str) -> tuple[str, Report]:
        return name, await check_client(CLIENTS[name][0], PATIENT)

    return dict(await asyncio.gather(*(one(name) for name in CLIENTS)))


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """The reports on all clients. They mostly wait, so all run at once."""
    return asyncio.run(_all_judged())


@pytest.mark.parametrize("name", CLIENTS)
def test_every_finding_about_a_client_of_ours_is_reviewed(reports: dict[str, Report], name: str):
    report = reports[name]
    assert (report.problems, report.blocked) == ([], "")
    said = sorted((finding.severity, finding.id) for finding in report.findings)
    assert said == sorted((severity, check) for severity, check, _ in CLIENTS[name][1]), report.findings


def test_a_run_with_one_prompt_lets_most_checks_see_something(reports: dict[str, Report]):
    assert reports["run"].count("pass") >= 85
