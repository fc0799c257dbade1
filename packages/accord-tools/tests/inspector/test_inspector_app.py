"""The inspector's server: who may ask, what the page may do, and what it answers."""

import asyncio
import json

import pytest

from accord_tools.inspector.inspector_app import inspecting
from accord_tools.inspector.library import MOST_SEARCHES, Library, trace_id
from tests.inspector.conftest import fetch
from tests.inspector.recording import Recording

TOKEN = "a-token-for-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
async def url(recording):
    recording.opening()
    recording.turn(2)
    async with inspecting(Library([recording.path], kept=False), token=TOKEN) as inspector:
        yield inspector.url.partition("#")[0]


@pytest.fixture
def trace(recording):
    return f"/api/traces/{trace_id(recording.path)}"


async def test_the_searches_that_were_used_last_are_kept(recording):
    recording.opening()
    library = Library([recording.path], kept=False)
    opened = await library.open(trace_id(recording.path))
    opened.search("first", ())
    for number in range(MOST_SEARCHES - 1):
        opened.search(f"number {number}", ())
    opened.search("first", ())
    opened.search("one more", ())
    known = [key for key in ("first", "number 0", "one more") if opened.known_search(key)]
    assert known == ["first", "one more"]
    await library.close()


async def test_the_page_needs_no_token_and_the_api_needs_one(url, trace):
    assert (await fetch(url))[0] == 200
    assert (await fetch(url, trace))[0] == 401
    assert (await fetch(url, trace, headers={"Authorization": "Bearer wrong"}))[0] == 401
    status, _, body = await fetch(url, trace, headers=BEARER)
    assert status == 200
    assert json.loads(body)["count"] == 17


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/traces"])
async def test_another_host_name_is_refused(url, path):
    """A name that an attacker points at this machine: DNS rebinding."""
    assert (await fetch(url, path, headers={**BEARER, "Host": "evil.example"}))[0] == 421


@pytest.mark.parametrize("path", ["/", "/api/traces"])
async def test_a_page_of_another_origin_is_refused(url, path):
    assert (await fetch(url, path, headers={**BEARER, "Origin": "http://evil.example"}))[0] == 403
    assert (await fetch(url, path, headers={**BEARER, "Origin": url.rstrip("/")}))[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_the_server_only_reads(url, method):
    assert (await fetch(url, "/api/traces", headers=BEARER, method=method))[0] == 405


@pytest.mark.parametrize(
    "path", ["/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/static", "/nothing.js", "//etc/passwd"]
)
async def test_only_files_of_the_page_are_served(url, path):
    assert (await fetch(url, path))[0] == 404


async def test_every_answer_has_the_strict_policy(url, trace):
    for path in ("/", "/main.js", "/style.css", trace, "/nothing"):
        _, headers, _ = await fetch(url, path, headers=BEARER)
        if path != "/nothing":
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "require-trusted-types-for 'script'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("question", "status", "problem"),
    [
        ("/rows?n=5", 400, "'from' must be a whole number, got None"),
        ("/rows?from=-1", 400, "'from' must be a whole number, got '-1'"),
        ("/frame?row=99", 404, "the trace has 17 messages; 99 is not among them"),
        ("/spans?turn=9", 404, "the trace has 2 turns; 9 is not among them"),
        ("/rows?from=0&view=q123", 404, "this search is not kept any more"),
        ("/search?q=dur:x", 400, "dur: must be like"),
        ("/strip?from=x", 400, "'from' must be a number of seconds"),
        ("/nothing", 404, "no such question"),
    ],
)
async def test_a_wrong_question_is_told_why(url, trace, question, status, problem):
    got, _, body = await fetch(url, trace + question, headers=BEARER)
    assert got == status
    assert problem in json.loads(body)["error"]


@pytest.mark.parametrize("path", ["/api/traces/0123456789abcdef", "/api/traces/0123456789abcdef/live", "/api/live"])
async def test_an_unknown_trace_is_not_opened(url, path):
    assert (await fetch(url, path, headers=BEARER))[0] == 404


async def test_a_search_is_a_view_of_its_own(url, trace):
    _, _, body = await fetch(url, f"{trace}/search?q=kind:tool_call", headers=BEARER)
    found = json.loads(body)
    assert (found["count"], found["done"]) == (3, True)
    _, _, body = await fetch(url, f"{trace}/rows?from=1&n=5&view={found['key']}", headers=BEARER)
    assert [row[0] for row in json.loads(body)["rows"]] == [9, 12]
    _, _, body = await fetch(url, f"{trace}/place?row=12&view={found['key']}", headers=BEARER)
    assert json.loads(body) == {"place": 2}
    _, _, body = await fetch(url, f"{trace}/strip?bins=4&view={found['key']}", headers=BEARER)
    assert sum(json.loads(body)["marks"]) == 3


async def test_live_events_tell_each_growth(url, trace, recording):
    host, port = url.removeprefix("http://").rstrip("/").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {trace}/live HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())

    async def count():
        return json.loads((await reader.readuntil(b"}\n\n")).rpartition(b"data: ")[2])["count"]

    assert await count() == 17
    recording.prompt(3, "More")
    assert await count() == 18
    writer.close()


async def test_a_replaced_file_is_read_from_its_start(url, trace, recording, tmp_path):
    await fetch(url, trace, headers=BEARER)
    other = Recording(tmp_path / "other.jsonl")
    other.opening("another")
    other.path.replace(recording.path)
    while True:
        _, _, body = await fetch(url, trace, headers=BEARER)
        found = json.loads(body)
        if found["generation"] == 1 and found["count"] == 4:
            break
    assert found["sessionList"][0]["name"] == "another"


async def test_a_file_that_is_not_a_trace_is_told(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text("hello\n")
    async with inspecting(Library([path], kept=False), token=TOKEN) as inspector:
        _, _, body = await fetch(inspector.url.partition("#")[0], f"/api/traces/{trace_id(path)}", headers=BEARER)
    assert "not an Accord trace" in json.loads(body)["problem"]
