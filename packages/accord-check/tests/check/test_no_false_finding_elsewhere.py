"""Our own agents under a URL, judged: every finding is true.

A change here is a review: look at the frames, and at the page, before the table is changed.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest

from accord.http import SharedHost, UrlTarget, serving
from accord.http.server.agent_host import CommandHost
from accord_check.agent.agent_run import check_agent
from accord_check.agent.settings import DEMO, PromptTexts
from accord_check.report import Report
from tests.check.test_no_false_finding import PATIENT

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[4]
FULL = replace(PATIENT, profile="full", quiet=0.3)
MEMORY_ONLY = ("note", "lint.load.after-restart")
OF_ANOTHER_CLIENT = [("fail", "config.boolean.only-when-advertised")]
"""A shared agent is told what its first client can do, and a later one of the checker's can do less."""

SERVED: dict[str, tuple[list[str], PromptTexts, int, str, list[tuple[str, str]]]] = {
    "demo over HTTP": (["-m", "accord", "demo"], DEMO, 1, "http", [MEMORY_ONLY]),
    "demo over WebSocket, in version 2": (["-m", "accord", "demo"], DEMO, 2, "ws", [MEMORY_ONLY]),
    "lasting over HTTP, in version 2": (["examples/lasting_agent.py"], PromptTexts(), 2, "http", []),
    "demo shared over HTTP": (["-m", "accord", "demo"], DEMO, 1, "http", OF_ANOTHER_CLIENT),
    "demo shared over WebSocket, in version 2": (["-m", "accord", "demo"], DEMO, 2, "ws", []),
    "careful editor over WebSocket": (["examples/careful_editor.py"], PromptTexts(), 1, "ws", [MEMORY_ONLY]),
}
"""By name: the arguments of Python, the prompts, the version, the way, and the reviewed findings."""


async def _served(name: str) -> tuple[str, Report]:
    arguments, prompts, version, way, _ = SERVED[name]
    host = CommandHost([sys.executable, *arguments], cwd=ROOT)
    async with serving(SharedHost(host) if "shared" in name else host) as server:
        url = server.url.replace("http", way, 1)
        settings = replace(FULL, prompts=prompts, versions=(version,), url=url)
        return name, await check_agent(name, UrlTarget(url).dial, settings)


WEB = ("fastapi_agent.py", "starlette_agent.py")
SECRET = "the secret of a test, 32 bytes or more"


@asynccontextmanager
async def _site(example: str) -> AsyncGenerator[str]:
    """The URL of an application that runs as a process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-u",
        str(ROOT / "examples" / "web" / example),
        env={"SECRET": SECRET, "PORT": "0", "PATH": ""},
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    said = ""
    try:
        while not (found := re.search(r"http://127.0.0.1:\d+", said)):
            line = await process.stderr.readline()
            assert line, said
            said += line.decode()
        yield f"{found[0]}/agents/acp"
    finally:
        process.kill()
        await process.communicate()


async def _in_an_application(example: str) -> tuple[str, Report]:
    token = jwt.encode({"sub": "ada", "exp": datetime.now(UTC) + timedelta(hours=1)}, SECRET, algorithm="HS256")
    async with _site(example) as url:
        target = UrlTarget(url, token=token)
        return example, await check_agent(example, target.dial, replace(FULL, profile="default", url=url))


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """The reports on all agents. They mostly wait, so all run at once."""

    async def all_judged() -> dict[str, Report]:
        return dict(await asyncio.gather(*map(_served, SERVED), *map(_in_an_application, WEB)))

    return asyncio.run(all_judged())


@pytest.mark.parametrize("name", SERVED)
def test_every_finding_about_a_served_agent_of_ours_is_reviewed(reports: dict[str, Report], name: str):
    report = reports[name]
    assert (report.problems, report.blocked) == ([], "")
    assert [(finding.severity, finding.id) for finding in report.findings] == SERVED[name][-1], report.findings
    assert report.count("pass") >= 75


@pytest.mark.parametrize("example", WEB)
def test_nothing_is_found_about_an_agent_in_an_application(reports: dict[str, Report], example: str):
    report = reports[example]
    assert (report.problems, report.blocked, report.findings) == ([], "", [])
    assert report.count("pass") >= 50
