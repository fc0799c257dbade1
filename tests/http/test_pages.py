"""Pages of other origins: what a browser is told, and what it then lets a page do."""

import asyncio
import http.client
from contextlib import closing

import pytest

from accord.http import Access, serving
from tests.http.talking import an_agent

PAGE = "https://app.example"
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,acp-connection-id"}


@pytest.fixture
async def ask():
    """Makes one request of a server with a token and one page, and returns status, headers and body."""
    access = Access(["s3cret"], origins=[PAGE])
    async with serving(an_agent(), access=access) as server:
        host, port = server.url.split("/")[2].split(":")

        def request(method, headers, body=None, path="/acp"):
            with closing(http.client.HTTPConnection(host, int(port), timeout=30)) as connection:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                return response.status, response.headers, response.read()

        yield lambda *given, **options: asyncio.to_thread(request, *given, **options)


def words(value):
    return {word.strip().lower() for word in value.split(",")}


async def test_a_preflight_of_a_listed_page_needs_no_token_and_says_what_it_may_send(ask):
    status, headers, body = await ask("OPTIONS", {"Origin": PAGE, **ASKS})
    assert (status, body) == (200, b"")
    assert headers["Access-Control-Allow-Origin"] == PAGE
    assert headers["Vary"] == "Origin"
    assert words(headers["Access-Control-Allow-Methods"]) == {"get", "post", "delete"}
    assert words(headers["Access-Control-Allow-Headers"]) >= {
        *("authorization", "content-type", "accept", "last-event-id"),
        *("acp-connection-id", "acp-session-id", "acp-protocol-version"),
    }
    assert headers["Access-Control-Allow-Credentials"] is None
    assert headers["Access-Control-Allow-Private-Network"] is None


async def test_a_preflight_that_asks_for_a_private_network_gets_its_answer(ask):
    asked = {"Origin": PAGE, **ASKS, "Access-Control-Request-Private-Network": "true"}
    _, headers, _ = await ask("OPTIONS", asked)
    assert headers["Access-Control-Allow-Private-Network"] == "true"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://app.example.evil.example"])
async def test_a_page_that_is_not_listed_is_told_nothing(ask, origin):
    for method, more in ("OPTIONS", ASKS), ("POST", {"Authorization": "Bearer s3cret"}):
        status, headers, _ = await ask(method, {"Origin": origin, "Content-Type": "application/json", **more})
        assert status == 403
        assert not [name for name in headers if name.lower().startswith("access-control")]


async def test_a_listed_page_can_read_the_id_of_its_connection(ask):
    sent = {"Origin": PAGE, "Content-Type": "application/json", "Authorization": "Bearer s3cret"}
    status, headers, _ = await ask("POST", sent, INITIALIZE)
    assert status == 200
    assert headers["Access-Control-Allow-Origin"] == PAGE
    assert words(headers["Access-Control-Expose-Headers"]) >= {"acp-connection-id", "accord-numbered"}


@pytest.mark.parametrize(
    ("method", "more", "path", "status"),
    [
        ("POST", {"Authorization": "Bearer wrong"}, "/acp", 401),
        ("POST", {}, "/elsewhere", 404),
        ("GET", {"Authorization": "Bearer s3cret"}, "/acp", 406),
        ("OPTIONS", {"Authorization": "Bearer s3cret"}, "/acp", 405),
    ],
)
async def test_a_listed_page_can_read_why_it_was_refused(ask, method, more, path, status):
    given, headers, _ = await ask(method, {"Origin": PAGE, "Content-Type": "application/json", **more}, path=path)
    assert given == status
    assert headers["Access-Control-Allow-Origin"] == PAGE


async def test_a_client_that_is_no_page_gets_no_headers_for_pages(ask):
    sent = {"Content-Type": "application/json", "Authorization": "Bearer s3cret"}
    _, headers, _ = await ask("POST", sent, INITIALIZE)
    assert not [name for name in headers if name.lower().startswith("access-control")]
