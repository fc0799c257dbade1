"""`accord serve` with named agents and Python files, and `--reload`; `accord bridge` with a name."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import accord
from tests.waiting import DEADLINE

AGENT = """
import accord

agent = accord.Agent("served")


@agent.on_prompt
async def reply(turn):
    await turn.say("version 1")
"""


@pytest.fixture
def serve(user):
    """Start a server, and give its process and its URL."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "accord", "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=user.folder,
            env=user.environment,
        )
        started.append(process)
        return process, process.stdout.readline().split()[-1]

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=DEADLINE)


def line_with(stream, words):
    """The first line that contains these words."""
    return next(line for line in stream if words in line)


def test_the_server_runs_on_uvloop_where_it_is_installed(user):
    pytest.importorskip("uvloop", reason="this test runs on uvloop, which is not for this platform")
    code = (
        "import os, accord.program\n"
        "from accord_tools.cli import main\n"
        "tell = lambda loop, name: (print(type(loop).__module__, flush=True), os._exit(0))\n"
        "accord.program.loop_watchers.append(tell)\n"
        "main(['serve', '--port', '0'])\n"
    )
    command = [sys.executable, "-c", code]
    said = subprocess.check_output(command, env=user.environment, text=True, timeout=DEADLINE)
    assert said == "uvloop\n"


async def test_a_change_of_the_code_ends_connections_and_new_ones_have_it(user, serve):
    script = user.write("served.py", AGENT)
    process, url = serve("served.py:agent", "--reload")
    async with accord.connect(url) as remote:
        session = await remote.new_session(user.folder)
        assert (await session.prompt("Hi")).text == "version 1"
        script.write_text(AGENT.replace("version 1", "version two"))
        assert "served.py has changed; connections ended: 1" in line_with(process.stderr, "has changed")
        with pytest.raises(accord.ConnectionClosed):
            await remote.new_session(user.folder)
    async with accord.connect(url) as remote:
        session = await remote.new_session(user.folder)
        assert (await session.prompt("Hi")).text == "version two"


def test_other_files_that_change_end_no_connection(user, serve, tmp_path):
    user.write("served.py", AGENT)
    process, _ = serve("served.py", "--reload")
    user.write("notes.txt", "changed")
    for folder in (".venv", "__pycache__"):
        (user.folder / folder).mkdir()
        user.write(f"{folder}/inside.py", "changed")
    user.write("beside.py", "changed")
    assert "beside.py has changed" in line_with(process.stderr, "has changed")


def test_a_named_agent_is_served_with_its_variables(user, serve):
    user.write("served.py", AGENT.replace('"version 1"', '__import__("os").environ["COLOUR"]'))
    user.said("agents", "add", "served", "--env", "COLOUR=red", "--", str(user.folder / "served.py"))
    _, url = serve("served")
    assert user.said("run", "Hi", "--", url) == "red\n"
    user.said("agents", "add", "far", "--url", url)
    assert user.said("run", "Hi", "-a", "far") == "red\n"
    assert "served is a command" in user.refused("bridge", "served")
    bridge = [sys.executable, "-m", "accord", "bridge", "far"]
    assert user.said("run", "Hi", "--", *bridge) == "red\n"


def test_the_token_of_a_file_and_headers_reach_a_server(user, serve):
    user.write("served.py", AGENT)
    (user.home / "token").parent.mkdir(parents=True, exist_ok=True)
    (user.home / "token").write_text("s3cret\n")
    _, url = serve("served.py", "--token-file", str(user.home / "token"))
    assert user.accord("run", "Hi", "--", url).returncode == 1
    assert user.said("run", "Hi", "--token-file", str(user.home / "token"), "--", url) == "version 1\n"
    assert user.said("run", "Hi", "--header", "Authorization: Bearer s3cret", "--", url) == "version 1\n"
    user.set(f'[agents.far]\nurl = "{url}"\ntoken_file = "{user.home / "token"}"\n')
    assert user.said("run", "Hi", "-a", "far") == "version 1\n"
    assert "offers no login method" in user.said("login", "far")
    assert "has no session" in user.said("sessions", "list", "-a", "far")


def test_what_cannot_be_served_is_refused(user):
    user.set('[agents.far]\nurl = "https://agents.example/acp"\n')
    assert "only a command can be served" in user.refused("serve", "far")
    assert "--reload is for an agent of a Python file" in user.refused("serve", "--reload")
    assert "--reload does not go with --shared" in user.refused("serve", "--reload", "--shared")
    assert "file not found: no.py" in user.refused("serve", "no.py")
    assert "no agent has the name 'nothing'" in user.refused("serve", "nothing")


def test_a_server_says_at_its_start_what_an_operator_checks_and_no_secret(user, serve):
    user.write("served.py", AGENT)
    (user.folder / "tokens").write_text("s3cret ada\nsecond ada\n0ther ada observer\nt0ken\n")
    options = [
        "--token-file",
        "tokens",
        "--metrics",
        "--hosts",
        "hosts.sqlite3",
        "--store",
        "sqlite:///tmp/s?password=pw",
    ]
    process, url = serve("served.py", *options, "--trusted-proxy", "10.0.0.0/8")
    said = [process.stderr.readline().removeprefix("accord serve: ").rstrip() for _ in range(7)]
    base = url.removesuffix("/acp")
    assert said[:6] == [
        f"ready: {base}/readyz",
        f"metrics: {base}/metrics",
        "names: 127.0.0.1, ::1, localhost",
        "tokens: 4 (owners: 2, observers: 1)",
        "store: sqlite:///tmp/s?password=***",
        said[5],
    ]
    assert said[5].startswith("hosts: 1 in hosts.sqlite3; this one is ")
    assert said[6].startswith("peers: reach this host at 127.0.0.1:")


def test_the_summary_of_a_start_is_one_record_of_a_log_in_json(serve):
    process, url = serve("--log-format", "json")
    record = json.loads(process.stderr.readline())
    assert record["level"] == "info"
    assert f"ready: {url.removesuffix('/acp')}/readyz; names: " in record["text"]
    assert "tokens: none, so every client is accepted" in record["text"]
