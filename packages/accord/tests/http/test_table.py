"""The table of valid and invalid requests (`asking`), sent with curl over HTTP/1.1 and HTTP/2, with and without TLS."""

import asyncio
import json
import shutil
import subprocess

import pytest

from accord.http import ServerLimits, serving
from tests.http.asking import CONNECTION, INITIALIZE, JSON, TABLE
from tests.http.talking import an_agent
from tests.waiting import DEADLINE

HAS_HTTP2 = shutil.which("curl") is not None and b"HTTP2" in subprocess.check_output(["curl", "--version"])
pytestmark = [
    pytest.mark.skipif(not HAS_HTTP2, reason="this test asks with a curl that speaks HTTP/2: install it"),
    pytest.mark.requirement(
        "http.initialize.answered-at-once",
        "http.post.accepted",
        "http.post.other-types-refused",
        "http.batch-refused",
        "http.connection-missing",
        "http.connection-unknown",
        "http.session-missing",
        "http.get.other-accept-refused",
    ),
]

WAYS = {
    "HTTP/1.1": ("--http1.1",),
    "HTTP/2, assumed": ("--http2-prior-knowledge",),
    "HTTP/2, agreed upon": ("--http2",),
    "HTTP/1.1 over TLS": ("--http1.1",),
}
SPEAKS = {"HTTP/1.1": "1.1", "HTTP/2, assumed": "2", "HTTP/2, agreed upon": "2", "HTTP/1.1 over TLS": "1.1"}
AT_ONCE = 4
"""curls at the same time."""


class Curl:
    def __init__(self, url, *options):
        self.base = url.removesuffix("/acp")
        self.options = options
        self.turn = asyncio.Semaphore(AT_ONCE)

    async def ask(self, method, path, headers, body):
        """The version, the status, the headers and the body of the answer."""
        named = [f"{name}: {value}" if value else f"{name}:" for name, value in headers.items()]
        options = [*self.options, "-s", "-i", "-X", method, "--max-time", str(DEADLINE)]
        data = () if body is None else ("--data-binary", "@-")
        arguments = [*options, *(part for header in named for part in ("-H", header)), *data, self.base + path]
        async with self.turn:
            process = await asyncio.create_subprocess_exec(
                "curl", *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            output, _ = await process.communicate(body)
        while output.startswith(b"HTTP/1.1 100"):
            output = output.partition(b"\r\n\r\n")[2]
        head, _, content = output.partition(b"\r\n\r\n")
        first, *lines = head.decode().splitlines() or [f"HTTP/0 {-process.returncode}"]
        version, status, *_ = first.split()
        told = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return version, int(status), told, content

    async def answered(self, asked):
        """What became of this: the status, the error in it, and the headers that were asked for."""
        headers = dict(asked.headers)
        if CONNECTION in headers.values():
            *_, opened, _ = await self.ask("POST", "/acp", JSON, json.dumps(INITIALIZE).encode())
            headers = {name: opened["acp-connection-id"] if it is CONNECTION else it for name, it in headers.items()}
        version, status, told, content = await self.ask(asked.method, asked.path, headers, asked.data)
        is_json = told.get("content-type") == "application/json"
        code = json.loads(content).get("error", {}).get("code") if is_json else None
        return version.removeprefix("HTTP/"), status, code, {name: told.get(name) for name in asked.has}, told, content


@pytest.mark.parametrize("way", WAYS)
async def test_each_request_of_the_table_gets_its_documented_response(way, request, caplog):
    encrypted = {}
    trusting = ()
    if way.startswith("HTTP/2, agreed") or way.endswith("TLS"):
        certificate, key = request.getfixturevalue("certificate")
        encrypted, trusting = {"certificate": certificate, "key": key}, ("--cacert", str(certificate))
    async with serving(an_agent(), limits=ServerLimits(body=64 * 1024), **encrypted) as server:
        curl = Curl(server.url, *WAYS[way], *trusting)
        answers = await asyncio.gather(*(curl.answered(asked) for asked in TABLE))
        version, status, *_ = await curl.ask("GET", "/healthz", {}, None)
        assert (version, status) == (f"HTTP/{SPEAKS[way]}", 200)
    wanted = {asked.name: (SPEAKS[way], asked.status, asked.code, asked.has) for asked in TABLE}
    got = {asked.name: answer[:4] for asked, answer in zip(TABLE, answers, strict=True)}
    assert {name: (got[name], wanted[name]) for name in wanted if got[name] != wanted[name]} == {}
    # Nothing is said to pages of browsers (CORS), and every refusal says what is wrong.
    for asked, (*_, told, content) in zip(TABLE, answers, strict=True):
        assert not any(name.startswith("access-control") for name in told)
        assert content or asked.status == 202, asked.name
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
