"""Clients that reach the agent by a URL: ours have no fault, and each fault of a request has its own name."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from accord_check.checks import ACTIVE_OF_CLIENT
from accord_check.client.client_run import check_client
from accord_check.report import Report
from tests.check.mutants import all_judged, found
from tests.check.test_mutants_of_a_client import PATIENT

pytestmark = pytest.mark.timeout(300)

CLIENT = Path(__file__).with_name("faulty_http_client.py")
ACCORD = [sys.executable, "-m", "accord", "run", "--allow", "auto", "hello", "--"]

MUTANTS = {
    "": set[str](),
    "posts text": {"~http.post.sends-json"},
    "reads anything": {"~http.get.accepts-events"},
    "forgets the connection": {"~http.connection-header"},
    "forgets the session": {"~http.session-header"},
    "names another session": {"~http.session-header"},
    "forgets the version": {"~http.version-header"},
    "forgets its cookies": {"~http.cookies-returned"},
}
"""By fault: what is found in the scenario of an agent that declares nothing; `~` warns."""

OURS = ("usual", "bare", "version", "late", "large", "garbage", "gone")


@pytest.fixture(scope="module")
def mutants() -> dict[str, Report]:
    async def judge(fault: str) -> Report:
        return await check_client([sys.executable, str(CLIENT), "{url}", fault], PATIENT, only=["bare"])

    return all_judged(MUTANTS, judge, 4)


@pytest.fixture(scope="module")
def ours() -> dict[str, Report]:
    async def judge(place: str) -> Report:
        return await check_client([*ACCORD, place], replace(PATIENT, answer_within=60), only=OURS)

    return all_judged(["{url}", "{ws}"], judge, 2)


@pytest.mark.parametrize("fault", MUTANTS)
def test_a_client_with_one_wrong_request_is_told_exactly_that(mutants: dict[str, Report], fault: str):
    report = mutants[fault]
    assert (report.problems, report.blocked) == ([], "")
    assert found(report) == MUTANTS[fault], "\n".join(str(finding) for finding in report.findings)


@pytest.mark.parametrize("place", ["{url}", "{ws}"])
def test_nothing_is_found_of_our_client_with_a_url(ours: dict[str, Report], place: str):
    report = ours[place]
    assert (report.problems, report.blocked, found(report)) == ([], "", set())
    assert report.count("pass") >= 75


def test_over_http_the_requests_of_our_client_are_judged(ours: dict[str, Report]):
    status = {outcome.check.id: outcome.status for outcome in ours["{url}"].outcomes}
    assert {status[name] for name in ACTIVE_OF_CLIENT if name.startswith("http.")} == {"pass"}
