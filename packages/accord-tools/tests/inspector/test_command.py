"""`accord inspect`: what it prints, what it refuses, and how it ends."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.inspector.conftest import fetch


def accord(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "accord", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


async def test_it_prints_the_url_with_the_token_and_serves_the_trace(inspect, recording):
    recording.opening()
    url = inspect(recording.path)
    address, _, token = url.partition("#")
    status, _, body = await fetch(address, "/api/traces", headers={"Authorization": f"Bearer {token}"})
    assert status == 200
    assert json.loads(body)[0]["name"] == "wire.jsonl"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_well(recording, number):
    recording.opening()
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", "inspect", recording.path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "http://127.0.0.1:" in process.stdout.readline()
    process.send_signal(number)
    _, problems = process.communicate(timeout=30)
    assert (process.returncode, problems) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing.jsonl"], "no such trace: nothing.jsonl"),
        (["--port", "x"], "--port must be a number up to 65535, got 'x'"),
        (["--html", "page.html"], "--html and --secrets belong to export"),
        (["export", "nothing.jsonl"], "no such trace: nothing.jsonl"),
        (["export"], "name one trace and the file to write"),
        (["x.jsonl", "--", "agent"], "not both"),
        (["--", "http://127.0.0.1:1/acp"], "is not a command; record a bridge to it"),
    ],
)
def test_wrong_usage_says_what_to_do(arguments, problem, tmp_path):
    done = accord("inspect", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr


def test_export_writes_a_page(recording, tmp_path):
    recording.opening()
    done = accord("inspect", "export", recording.path, "--html", tmp_path / "wire.html")
    assert done.returncode == 0
    assert "4 messages" in done.stdout
    assert (tmp_path / "wire.html").read_text().startswith("<!doctype html>")


async def test_an_agent_that_it_records_is_found_by_the_next_inspector(tmp_path, inspect, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hello = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}) + "\n"
    done = accord("inspect", "--", sys.executable, "-m", "accord", "demo", input=hello, env=os.environ)
    assert json.loads(done.stdout.splitlines()[0])["result"]["protocolVersion"] == 1
    address, _, token = inspect().partition("#")
    headers = {"Authorization": f"Bearer {token}"}
    _, _, body = await fetch(address, "/api/traces", headers=headers)
    [trace] = json.loads(body)
    _, _, body = await fetch(address, f"/api/traces/{trace['id']}", headers=headers)
    assert json.loads(body)["client"] == {"protocolVersion": 1}
