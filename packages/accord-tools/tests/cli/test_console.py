"""What an agent, a server or a file says does not act on the user's terminal, whichever way it gets there."""

from __future__ import annotations

import json
import os
import re
import runpy
import socketserver
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from accord.printable import columns
from accord_tools.cli.console import reflowed
from tests.cli.pseudo_terminal import ACCORD
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")

SCRIPT = Path(__file__).with_name("evil_agent.py")
EVIL = runpy.run_path(str(SCRIPT))["EVIL"]
AGENT = [sys.executable, str(SCRIPT)]
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ud800-\udfff\ue000]|\u0301{9}")


SAID = {
    "its text": (["run", "hi"], "text", "hello ␛]0;PWNED\nTITLE␇"),
    "its updates": (["run", "hi", "--json"], "text", '"title": "'),
    "an error before there is a session": (["run", "hi"], "initialize", "initialize: bad ␛]0;PWNED"),
    "an error that opens no session": (["run", "hi"], "session", "session/new: bad ␛]0;PWNED"),
    "an error that ends the turn": (["run", "hi"], "prompt", "session/prompt: bad ␛]0;PWNED"),
    "an error as JSON": (["run", "hi", "--json"], "prompt", '"type":"error"'),
    "a traceback": (["--debug", "run", "hi"], "prompt", "Traceback"),
    "its last words on standard error": (["run", "hi"], "stderr", "over␈␈␈␛P+q544e"),
    "a line that is not a message": (["run", "hi"], "pollution", "a line that is not a message: 'not json"),
    "the modes that it has": (["run", "hi", "--mode", "no"], "text", "the agent has no mode 'no'; it has ␛]0;PWNED"),
    "the options that it has": (["run", "hi", "--set", "no=1"], "text", "the agent has no config option"),
    "the ways to log in": (["login", "--list"], "ways", "  Way ␛]0;PWNED"),
    "that there is no way": (["login"], "text", "offers no login method"),
    "what it is": (["info"], "ways", "nice␛]0;PWNED"),
    "what it is, as JSON": (["info", "--json"], "ways", '"authMethods"'),
    "a session that info cannot open": (["info"], "session", "not opened: session/new: bad ␛]0;PWNED"),
    "a way that there is not": (["login", "--method", "no"], "ways", "the agent has no login method 'no'"),
}


@pytest.mark.parametrize(("arguments", "where", "shown"), SAID.values(), ids=SAID)
def test_nothing_that_an_agent_says_acts_on_the_terminal(terminal, arguments, where, shown):
    seen = terminal(*arguments, "--", *AGENT, where).to_the_end()
    assert not ACTS.search(seen)
    assert shown in seen


def test_questions_of_a_login_are_one_line_each_and_bounded(terminal):
    asking = terminal("login", "--", *AGENT, "ways")
    asking.shows("Which method?")
    asking.types("1\n")
    seen = asking.to_the_end()
    assert not ACTS.search(seen)
    assert seen.splitlines()[49].startswith("50. m49")
    assert seen.splitlines()[50] == "… and 10 more"
    assert max(map(columns, seen.splitlines()[:50])) < 3 * 160 + 10

    asking = terminal("login", "--", *AGENT, "variables")
    asking.shows("Label")
    asking.types("\n")
    seen = asking.to_the_end()
    assert not ACTS.search(seen)
    assert "See https://e.example/␛]0;PWNED" in seen


def test_nothing_that_an_mcp_server_says_on_standard_error_acts_on_the_terminal(terminal, tmp_path):
    agent = terminal("demo", output=str(tmp_path / "output"))
    agent.shows("Press Ctrl-D")
    server = {"name": "evil", "command": sys.executable, "args": [str(SCRIPT), "stderr"], "env": []}
    opened = {"cwd": str(tmp_path), "mcpServers": [server]}
    for number, (method, params) in enumerate({"initialize": {"protocolVersion": 1}, "session/new": opened}.items()):
        agent.types(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    agent.shows("over␈␈␈␛P+q544e")
    agent.types("\x04")
    assert not ACTS.search(agent.to_the_end())


def test_a_pipe_gets_what_an_agent_says_as_it_is(tmp_path):
    command = [*ACCORD, "run", "hi", "--", *AGENT, "text"]
    done = subprocess.run(command, check=False, capture_output=True, timeout=60, cwd=tmp_path)
    assert done.stdout.decode() == f"hello {EVIL} bye\n"


class Refusing(socketserver.BaseRequestHandler):
    def handle(self):
        body = f"go away {EVIL}".encode()
        self.request.recv(65_536)
        self.request.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


@pytest.fixture
def refusing():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}/acp?key=s3cret"
        server.shutdown()


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("command", ["run", "bridge", "login"])
def test_nothing_that_a_server_says_acts_on_the_terminal_and_no_secret_of_its_url_is_printed(
    terminal, refusing, scheme, command
):
    url = f"{scheme}://{refusing}"
    if command == "bridge":
        started = terminal("bridge", url)
        started.types('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
    else:
        started = terminal(*(["run", "hi"] if command == "run" else ["login"]), "--", url)
    seen = started.to_the_end()
    said = seen[seen.index(f"accord {command}: ") :]
    assert "403" in said
    assert not ACTS.search(said)
    assert "s3cret" not in said


def test_a_question_is_whole_on_the_screen_and_nothing_is_printed_over_it(terminal, tmp_path):
    asked = terminal("run", "hi", "--trace", "wire", "--", *AGENT, "permission")
    question = asked.shows("└ Choose 1 to 2, y to allow always, n to reject once:")
    wait_until(lambda: "_painted" in (tmp_path / "wire").read_text())
    assert asked.shows("└ Choose") == question
    assert re.search(r"│ wants to  execute: list ␛\]0;PWNED", question)
    assert "│ command   rm -rf ~" in question
    assert "│ 1. allow always   “No, and do not ask again”" in question
    assert "│ 2. reject once    “␛]0;PWNED TITLE" in question
    assert "README" not in question
    asked.types("2\n")
    seen = asked.to_the_end()
    assert not ACTS.search(seen)
    before, _, behind = seen.partition("n to reject once: ")
    assert before.startswith("before\n\n")
    assert behind.count("README.md") == 20
    assert "the answer was n" in behind


def test_what_an_agent_says_while_a_question_is_open_is_kept_within_bounds_and_printed_after_it(terminal, tmp_path):
    noted, output = tmp_path / "noted", tmp_path / "output"
    asked = terminal("run", "hi", "--", *AGENT, "flood", str(noted), output=str(output))
    asked.shows("└ Choose 1 to 2")
    wait_until(noted.exists)
    taken = int(noted.read_text())
    assert taken < 64 * 1024 * 1024
    assert output.read_text() in ("", "before ")
    asked.types("2\n")
    asked.to_the_end()
    printed = output.read_bytes().decode()
    assert printed.startswith("before xxx")
    assert printed.count("x") >= taken - taken // 100
    assert "the answer was n" in printed
    assert asked.process.returncode == 0


def test_a_question_goes_when_its_turn_ends_however_much_waits_to_be_printed(terminal, tmp_path):
    shown = tmp_path / "shown"
    os.mkfifo(shown)
    asked = terminal("run", "hi", "--", *AGENT, "unanswered", str(shown))
    asked.shows("└ Choose 1 to 2")
    shown.write_text("")
    seen = asked.to_the_end()
    assert "x\nthe end\n" in seen
    assert asked.process.returncode == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one two three four five", "one two three\nfour five"),
        ("  a   one two three four", "  a   one two\n      three\n      four"),
        ("  a long command   one two three", "  a long command\n      one two\n      three"),
        ("one two three four\nfive six\n\nseven", "one two three\nfour five six\n\nseven"),
        ("heading is long too:\none two", "heading is long\ntoo:\none two"),
        ("accord run one two three\naccord run", "accord run one\ntwo three\naccord run"),
        ("one two\nthree", "one two\nthree"),
    ],
)
def test_a_help_text_is_filled_anew_only_where_it_is_too_wide(text, shown):
    assert reflowed(text, 15) == shown
