"""Other people's clients, judged by `accord check client`: every finding is true, by the clause beside it.

A change here is a review: look at the frames, and at the page, before the table is changed.
"""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from benchmarks.build import Unavailable
from interop.peers import SDKS, command
from interop.real_agents import node_programs

from accord_check.client.client_run import check_client
from accord_check.client.scenario_run import ClientSettings
from interop import acpx

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]

LINK = ("fail", "files.escape-proof", "rfd-additional-directories: it follows a link out of the session's folder")
CUT = ("fail", "terminal.output.whole-characters", "terminals: it cuts a character of two bytes")
GOES_ON = ("warn", "initialize.version.client-leaves", "initialization: it opens a session after version 65535")

REVIEWED = {
    "accord": [CUT, GOES_ON],
    "python": [
        CUT,
        GOES_ON,
        ("warn", "jsonrpc.error.invalid-request", "json-rpc: a method that is a number is answered with -32601"),
    ],
    "typescript": [LINK, CUT, GOES_ON],
    "go": [
        LINK,
        CUT,
        GOES_ON,
        ("warn", "jsonrpc.error.invalid-request", "json-rpc: a method that is a number has no answer"),
        ("warn", "lint.client.takes-many-updates", "it closes the connection when its queue of updates is full"),
        ("warn", "config.unknown-type-ignored", "session-config-options: session/new fails for an unknown type"),
        ("fail", "prompt.session-first", "prompt-turn: what follows from that, as the script goes on"),
    ],
    "rust": [LINK, CUT, GOES_ON],
}
"""The clients of this suite: what the SDKs do, and what the handlers do that the suite gives them (files, output)."""

OF_ACPX = [GOES_ON]


def judged(client, **variables):
    patient = ClientSettings(answer_within=60, asks_within=30, start_within=120, end_within=20, env=variables)
    report = asyncio.run(check_client(client, patient))
    assert (report.problems, report.blocked) == ([], "")
    return sorted((finding.severity, finding.id) for finding in report.findings), report.findings


@pytest.mark.parametrize("name", REVIEWED)
def test_every_finding_about_the_client_of_an_sdk_is_reviewed(name):
    try:
        command(SDKS[name], "client")
    except Unavailable as missing:
        pytest.skip(str(missing))
    client = [sys.executable, "-m", "interop.checked_client", name, "{agent}"]
    said, findings = judged(client, PYTHONPATH=str(ROOT))
    reviewed = sorted((severity, check) for severity, check, _ in REVIEWED[name])
    assert [it for it in said if it != OVERFLOW] == [it for it in reviewed if it != OVERFLOW], findings


OVERFLOW = ("warn", "lint.client.takes-many-updates")
"""A finding about a queue that overflows or not: the speed of the client decides."""


def test_every_finding_about_acpx_is_reviewed(tmp_path):
    try:
        program = acpx.installed() / "acpx"
    except Unavailable as missing:
        pytest.skip(str(missing))
    path = f"{node_programs()}{os.pathsep}{os.environ['PATH']}"
    client = [str(program), "--approve-all", "--ttl", "5", "--agent", "{agent}", "exec", "hello"]
    said, findings = judged(client, PATH=path, HOME=str(tmp_path))
    assert said == sorted((severity, check) for severity, check, _ in OF_ACPX), findings
