"""Releases of the official Python SDK on our engine: our tests, the SDK's own, and agents that are built on it."""

import subprocess
import sys

import pytest
from benchmarks.build import Unavailable
from interop.conversation import NOT_OFFERED, PASSED, converse
from interop.model.server import ModelServer
from interop.official_sdk import AGENTS, RELEASES, ROOT, TESTED, environment, reason_of, run_tests
from interop.real_agents import installed

pytestmark = pytest.mark.timeout(1300)


@pytest.mark.interop
@pytest.mark.parametrize("release", RELEASES)
def test_our_tests_pass_with_each_release(release):
    tests = ROOT / "packages" / "accord-adapters" / "tests" / "adapters" / "test_official_sdk.py"
    try:
        variables = environment(release)
    except Unavailable as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", str(tests)]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout


@pytest.mark.interop
@pytest.mark.parametrize("release", TESTED)
def test_the_sdk_s_own_tests_pass_on_our_engine_but_for_those_with_a_reason(release, tmp_path):
    try:
        ours = run_tests(release, tmp_path)
    except Unavailable as missing:
        pytest.skip(str(missing))
    unexplained = {name for name in ours.failed if reason_of(name) is None}
    if unexplained:  # some count every warning, also of what tests before them left for the collector of garbage
        unexplained -= run_tests(release, tmp_path, only=unexplained).passed
    if unexplained:  # some allow a program a second or two to start, which a busy machine does not keep
        unexplained -= run_tests(release, tmp_path, on_ours=False).failed
    assert unexplained == set()
    assert len(ours.passed) >= {"0.12.1": 170, "1.0.0rc3": 350}[release]


@pytest.mark.agents
@pytest.mark.parametrize("name", AGENTS)
async def test_an_agent_of_the_sdk_goes_through_the_whole_conversation_on_our_engine(name, tmp_path):
    agent = AGENTS[name]
    try:
        installed(agent)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with ModelServer() as model:
        parts = await converse(agent, model, tmp_path, 1)
    wrong = {part: how for part, how in parts.items() if how not in (PASSED, NOT_OFFERED)}
    assert wrong.keys() == agent.lacks.keys() & parts.keys(), "\n".join([str(wrong), *model.notes])
