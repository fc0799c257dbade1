"""The official Python SDK's own tests and examples run on our engine, with their imports changed and nothing else."""

import re
import subprocess
import sys

import pytest
from benchmarks.build import Unavailable
from interop.compat import REASONS, environment, rewritten, run_tests

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]


def copy_of(folder, **options):
    try:
        return rewritten(folder, **options)
    except Unavailable as missing:
        pytest.skip(str(missing))


def test_the_official_sdk_s_tests_pass_but_for_those_with_a_reason(tmp_path):
    outcome = run_tests(copy_of(tmp_path))
    assert outcome.unexplained() == []
    assert len(outcome.passed) == 144
    stale = [pattern for pattern in REASONS if not any(re.fullmatch(pattern, name) for name in outcome.failed)]
    assert stale == []


def test_its_tests_of_helpers_pass_where_the_base_class_of_models_is_ours_too(tmp_path):
    outcome = run_tests(copy_of(tmp_path, models_too=True), "tests/test_golden.py")
    assert outcome.failed == frozenset()
    assert len(outcome.passed) == 57


def answered(folder, *command, said="hello\n"):
    """What a program prints that is told this at its console."""
    done = subprocess.run(
        [sys.executable, *command],
        check=False,
        cwd=folder / "examples",
        env=environment(folder),
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        (["client.py", "agent.py"], ["| Agent: Client sent:", "| Agent: hello"]),
        (["client.py", "echo_agent.py"], ["| Agent: hello"]),
        (["duet.py"], ["| Agent: Client sent:", "| Agent: hello"]),
    ],
    ids=lambda it: " ".join(it),
)
def test_an_example_of_the_official_sdk_shows_the_turn(tmp_path, command, lines):
    printed = answered(copy_of(tmp_path), *command)
    assert re.findall(r"\| Agent: [^\n]*", printed) == lines


def test_its_client_for_gemini_holds_a_turn_with_an_agent_that_takes_gemini_s_place(tmp_path):
    folder = copy_of(tmp_path)
    gemini = folder / "gemini"
    gemini.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder / "examples" / "echo_agent.py"}"\n')
    gemini.chmod(0o755)
    assert "hello" in answered(folder, "gemini.py", "--gemini", str(gemini), "--yolo", said="hello\n:exit\n")
