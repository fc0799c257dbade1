"""A state folder of each test's own, in which kept traces and descriptors are, and taps around programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401

PRELUDE = "import os, signal, sys, time\n"
MARK = "ACCORD_TEST_OF_TAP"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv(MARK, str(tmp_path))
    return folder / "accord"


@pytest.fixture
def tap(tmp_path):
    """Starts `accord trace OPTIONS -- COMMAND`, where a command is a list, or a Python program as a string."""
    started = []

    def start(*words, before=()):
        *options, command = words
        if isinstance(command, str):
            command = [sys.executable, "-I", "-S", "-c", PRELUDE + command]
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "accord", "trace", *options, "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def marked(tmp_path):
    """The command lines of this test's processes that still run, from what Linux tells of their environments."""

    def marked():
        wanted = f"{MARK}={tmp_path}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_bytes().split(b"\0")
                if wanted in environment and int(process.name) != os.getpid():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found

    return marked


@pytest.fixture
def accord(tmp_path, monkeypatch):
    """Runs `accord trace WORDS` in the test's folder, without a terminal."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "accord", "trace", *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run
