"""`accord serve` with limits of processes: what it refuses, and in which words."""

from __future__ import annotations

import subprocess
import sys

import pytest

from accord.confinement.process_limits import ProcessLimits
from accord.http import CommandHost


def served(*arguments):
    command = [sys.executable, "-m", "accord", "serve", "--port", "0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--memory", "2Q", "--", "cat"], "--memory must be a number of bytes, or text such as 512M or 2G, got '2Q'"),
        (["--tasks", "0", "--", "cat"], "--tasks must be a positive number of processes, got 0"),
        (["--memory", "2G"], "the built-in agent runs in the server"),
        (
            ["--container-network", "none", "--", "cat"],
            "--container-network and --container-engine go with --container",
        ),
        (["--container", "i", "--container-engine", "no-such", "--", "cat"], "program not found: no-such"),
    ],
)
def test_what_cannot_be_is_refused_in_words(arguments, words):
    code, complaint = served(*arguments)
    assert code != 0
    assert words in complaint
    assert "Traceback" not in complaint


def test_limits_that_cannot_be_kept_stop_the_server(monkeypatch, tmp_path):
    monkeypatch.setenv("ACCORD_CGROUP", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    code, complaint = served("--memory", "2G", "--", sys.executable)
    assert code != 0
    assert "the limits of processes cannot be kept here" in complaint
    assert "docs/hosts.md" in complaint


def test_a_host_without_limits_needs_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("ACCORD_CGROUP", str(tmp_path))
    assert CommandHost(["agent"], limits=ProcessLimits()).name == "agent"
