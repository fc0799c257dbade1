"""`accord conduct` as people and editors start it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from accord import trace
from accord.testing import ScriptedPeer
from accord.transports.process_transport import ProcessTransport
from tests.proxy.conftest import CONDUCT
from tests.waiting import DEADLINE

DEMO = shlex.join([sys.executable, "-m", "accord", "demo"])
PASSING = shlex.join([*CONDUCT, "--as-proxy"])

SHOUT = """
import accord

proxy = accord.Proxy("shout")


@proxy.prompts
def shout(prompt, hop):
    return [hop.text(block.text.upper()) for block in prompt]
"""

ECHO = """
import accord

agent = accord.Agent("echo")


@agent.on_prompt
async def echo(turn):
    await turn.say(turn.text)
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "shout.py").write_text(SHOUT)
    (tmp_path / "echo.py").write_text(ECHO)
    return tmp_path


def accord(*arguments, cwd=None, stdin=""):
    return subprocess.run(
        [sys.executable, "-m", "accord", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=cwd,
        input=stdin,
    )


def asked(components, cwd, *options):
    """What the chain of these components answers to a prompt."""
    done = accord("run", "hello", "--quiet", "--", *CONDUCT, *options, *components, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "components",
    [
        ["shout.py", "echo.py"],
        ["shout.py:proxy", "echo.py:agent"],
        ["agent", "shout.py", "echo.py"],
        ["-n", "mine", "agent", "shout.py", "echo.py"],
        [PASSING, "shout.py", "echo.py"],
        [f"{PASSING} shout.py", "echo.py"],
        [shlex.join([*CONDUCT, "proxy", "shout.py"]), "echo.py"],
        [f"{sys.executable} -m accord.agent_file shout.py", "echo.py"],
    ],
    ids=" ".join,
)
def test_components_are_written_as_words(files, components):
    assert asked(components, files) == "HELLO"


@pytest.mark.parametrize("env", [{"SUFFIX": "!"}, [{"name": "SUFFIX", "value": "!"}]])
def test_a_component_may_be_a_json_object(files, env):
    code = ECHO.replace("turn.text", "turn.text + os.environ['SUFFIX']") + "\nagent.run()\n"
    (files / "suffix.py").write_text("import os\n" + code)
    component = json.dumps({"command": sys.executable, "args": ["suffix.py"], "env": env})
    assert asked(["shout.py", component], files) == "HELLO!"


@pytest.mark.parametrize(
    ("components", "problem"),
    [
        ([], "name at least one component"),
        (["agent"], "name at least one component"),
        ([""], "component 1: a component is empty"),
        (["echo.py", "a 'b"], 'component 2: cannot split the component "a \'b" into words: No closing quotation'),
        (['{"args": []}'], "component 1: cannot read the component"),
        (['{"command": "x", "env": [{"name": "A"}]}'], "component 1: cannot read the component"),
    ],
)
def test_a_component_that_cannot_be_read_is_wrong_usage(files, components, problem):
    done = accord("conduct", *components, cwd=files)
    assert done.returncode == 2
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_help_shows_how_a_chain_is_written():
    help_text = accord("conduct", "--help").stdout
    assert 'accord conduct "python house_rules.py" "gemini --acp"' in help_text
    assert "--as-proxy" in help_text


async def test_a_trace_shows_each_hop_without_envelopes_and_without_secrets(files):
    server = {"name": "m", "command": "x", "args": [], "env": [{"name": "K", "value": "s3cret"}]}
    command = [*CONDUCT, "--trace", "chain.jsonl", "shout.py", "echo.py"]
    async with ScriptedPeer(ProcessTransport(command, cwd=files), deadline=DEADLINE) as client:
        await client.request("initialize", {"protocolVersion": 1})
        await client.request("session/new", {"cwd": "/", "mcpServers": [server]})
    text = (files / "chain.jsonl").read_text()
    assert '"proxy/' not in text
    assert "s3cret" not in text
    events = list(trace.read(files / "chain.jsonl"))
    frames = [(*event.hop, event.direction, json.loads(event.frame)) for event in events]
    asked = [hop for hop in frames if hop[3].get("method") == "initialize"]
    (client, proxy, *_), (_, agent, *_) = asked
    assert client == "the client"
    assert proxy.startswith("proxy 1 (")
    assert agent.startswith("the agent (")
    assert [hop[:3] for hop in asked] == [(client, proxy, "out"), (proxy, agent, "out")]
    ids = [call["id"] for *_, call in reversed(asked)]
    answers = [hop[:3] for number in ids for hop in frames if "result" in hop[3] and hop[3]["id"] == number]
    assert answers == [(agent, proxy, "in"), (proxy, client, "in")]
    assert os.stat(files / "chain.jsonl").st_mode & 0o077 == 0  # noqa: PTH116


def test_a_component_that_floods_standard_error_does_not_stop_the_chain(files):
    noisy = "import sys\nfor _ in range(5000): print('x' * 500, file=sys.stderr)\n" + ECHO + "\nagent.run()\n"
    (files / "noisy.py").write_text(noisy)
    process = subprocess.Popen(
        [*CONDUCT, f"{sys.executable} noisy.py"],
        cwd=files,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # which is not read
    )
    with process:
        process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n')
        process.stdin.flush()
        assert b'"result"' in process.stdout.readline()
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_the_text_of_a_component_cannot_act_on_a_terminal(files):
    (files / "evil.py").write_text("import sys\nprint('\\x1b]0;owned\\x07', file=sys.stderr)\n")
    stdin = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = accord("conduct", f"{sys.executable} evil.py", cwd=files, stdin=stdin)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr
    assert "\x07" not in done.stderr
