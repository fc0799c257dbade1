"""What the checks ask over raw HTTP: a server that answers as the page says passes, and each fault has its name."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from accord.transports import Transport
from accord_check.agent.raw_http import raw_http
from accord_check.agent.scenario_context import ScenarioContext
from accord_check.agent.settings import Settings


class Answers(BaseHTTPRequestHandler):
    """Answers as the page says; the server's fault is a status code in place of another."""

    server: Server

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        message = json.loads(self.rfile.read(length))
        if self.headers.get("Origin"):
            self.reply("origin", 403)
        elif message["method"] == "initialize":
            self.server.open = {"c1"}
            self.reply("initialize", 200, {} if self.server.fault == "no id" else {"Acp-Connection-Id": "c1"})
        elif self.headers.get("Acp-Connection-Id") is None:
            self.reply("missing", 400)
        elif self.headers["Acp-Connection-Id"] not in self.server.open:
            self.reply("unknown", 404)
        elif self.headers["Content-Type"] != "application/json":
            self.reply("type", 415)
        else:
            self.reply("accepted", 202)

    def do_GET(self) -> None:
        if "text/event-stream" not in self.headers["Accept"]:
            self.reply("accept", 406)
        else:
            self.reply("session", 404)

    def do_DELETE(self) -> None:
        self.server.open = set()
        self.reply("delete", 202)

    def reply(self, place: str, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(self.server.status if self.server.fault == place else status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing on standard error."""


class Server(ThreadingHTTPServer):
    fault = ""
    status = 200
    open: set[str] = set()  # noqa: RUF012


@contextmanager
def serving(fault: str) -> Generator[str]:
    server = Server(("127.0.0.1", 0), Answers)
    server.fault, server.status = fault, 500 if fault == "initialize" else 200
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/acp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


FAULTS = {
    "initialize": {"http.initialize.answered-at-once"},
    "no id": {"http.initialize.gives-connection-id"},
    "accepted": {"http.post.accepted"},
    "type": {"http.post.other-types-refused"},
    "accept": {"http.get.other-accept-refused"},
    "missing": {"http.connection-missing"},
    "session": {"http.session-unknown"},
    "origin": {"lint.http.origin-refused"},
    "delete": {"http.delete-ends-connection"},
    "unknown": {"http.connection-unknown", "http.delete-ends-connection"},
    "": set[str](),
}
"""By the place where another status comes: what is found."""


def never() -> Transport:
    raise AssertionError("no process is started")


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_status_that_the_page_does_not_have_is_found_under_its_own_name(fault: str, tmp_path: Path):
    with serving(fault) as url:
        context = ScenarioContext(never, Settings(url=url, answer_within=20), tmp_path)
        await raw_http(context)
    assert {finding.id for finding in context.tally.findings} == FAULTS[fault]


async def test_an_agent_without_an_address_is_asked_nothing(tmp_path: Path):
    context = ScenarioContext(never, Settings(), tmp_path)
    await raw_http(context)
    assert context.reasons["http.post.accepted"] == "the agent has no http address"


async def test_checks_behind_a_proxy_of_another_kind_are_skipped_and_say_so(tmp_path: Path):
    context = ScenarioContext(
        never, Settings(url="http://agent.invalid/acp", proxy="socks5://127.0.0.1:1080"), tmp_path
    )
    await raw_http(context)
    assert context.reasons["http.post.accepted"].endswith("the agent is behind socks5://127.0.0.1:1080")
