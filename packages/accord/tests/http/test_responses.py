"""The responses of the server to requests of curl, over HTTP/1.1 and HTTP/2."""

import asyncio
import json
import shutil
from dataclasses import dataclass

import pytest

import accord
from accord.http import Access, App, ServerLimits, serving
from tests.http.talking import an_agent
from tests.waiting import DEADLINE

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="this test asks with curl: install it")

JSON = ("-H", "Content-Type: application/json")
EVENTS = ("-H", "Accept: text/event-stream")


@dataclass
class Got:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@pytest.fixture(params=["--http1.1", "--http2-prior-knowledge"])
def curl(request):
    async def ask(url, *arguments, body=None):
        data = () if body is None else ("--data-binary", "@-")
        process = await asyncio.create_subprocess_exec(
            *("curl", request.param, "-s", "-i", "--max-time", str(DEADLINE), *data, *arguments, url),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate(
            body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        )
        *_, head, content = _parts(output)
        first, *lines = head.decode().splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return Got(int(first.split()[1]), headers, content)

    return ask


def _parts(output):
    while output.startswith(b"HTTP/1.1 100"):
        output = output.partition(b"\r\n\r\n")[2]
    head, _, content = output.partition(b"\r\n\r\n")
    return head, content


def call(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


INITIALIZE = call(1, "initialize", protocolVersion=1)


async def opened(curl, url):
    """A connection's header."""
    got = await curl(url, *JSON, body=INITIALIZE)
    return ("-H", f"Acp-Connection-Id: {got.headers['acp-connection-id']}")


@pytest.mark.requirement("http.initialize.answered-at-once", "http.initialize.gives-connection-id")
@pytest.mark.requirement("http.initialize.id-in-result")
async def test_initialize_is_answered_in_its_own_response(server, curl):
    got = await curl(server.url, *JSON, body=INITIALIZE)
    assert got.status == 200
    assert got.headers["content-type"] == "application/json"
    assert got.headers["acp-connection-id"]
    assert got.json["id"] == 1
    assert got.json["result"]["protocolVersion"] == 1
    assert got.json["result"]["connectionId"] == got.headers["acp-connection-id"]


@pytest.mark.requirement("http.post.accepted")
async def test_any_other_valid_post_is_202_without_a_body(server, curl):
    connection = await opened(curl, server.url)
    got = await curl(server.url, *JSON, *connection, body=call(2, "session/new", cwd="/project", mcpServers=[]))
    assert (got.status, got.body) == (202, b"")


@pytest.mark.requirement("http.post.other-types-refused")
async def test_a_post_that_is_not_json_is_415(server, curl):
    assert (await curl(server.url, "-H", "Content-Type: text/plain", body=INITIALIZE)).status == 415


@pytest.mark.requirement("http.batch-refused")
async def test_a_batch_is_400_with_the_json_rpc_error(server, curl):
    got = await curl(server.url, *JSON, body=[INITIALIZE])
    assert got.status == 400
    assert (got.json["id"], got.json["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize(("body", "code"), [(b"{oops", -32700), (b"7", -32600), (b'{"id":1,"method":5}', -32600)])
async def test_an_invalid_message_is_400_with_the_json_rpc_error(server, curl, body, code):
    got = await curl(server.url, *JSON, body=body)
    assert got.status == 400
    assert got.json["error"]["code"] == code


@pytest.mark.requirement("http.connection-missing")
async def test_a_request_without_its_connection_id_is_400(server, curl):
    assert (await curl(server.url, *JSON, body=call(2, "session/new"))).status == 400
    assert (await curl(server.url, *EVENTS)).status == 400
    assert (await curl(server.url, "-X", "DELETE")).status == 400
    connection = await opened(curl, server.url)
    assert (await curl(server.url, *JSON, *connection, body=INITIALIZE)).status == 400


@pytest.mark.requirement("http.connection-unknown")
async def test_an_unknown_connection_is_404(server, curl):
    nobody = ("-H", "Acp-Connection-Id: nobody")
    assert (await curl(server.url, *JSON, *nobody, body=call(2, "session/new"))).status == 404
    assert (await curl(server.url, *EVENTS, *nobody)).status == 404
    assert (await curl(server.url, "-X", "DELETE", *nobody)).status == 404


@pytest.mark.requirement("http.session-missing")
async def test_a_sessions_message_without_its_header_is_400(server, curl):
    connection = await opened(curl, server.url)
    prompt = call(3, "session/prompt", sessionId="s", prompt=[])
    assert (await curl(server.url, *JSON, *connection, body=prompt)).status == 400
    assert (await curl(server.url, *JSON, *connection, "-H", "Acp-Session-Id: t", body=prompt)).status == 400
    assert (await curl(server.url, *JSON, *connection, "-H", "Acp-Session-Id: s", body=prompt)).status == 202


@pytest.mark.requirement("http.get.other-accept-refused")
async def test_a_get_that_does_not_accept_events_is_406(server, curl):
    connection = await opened(curl, server.url)
    assert (await curl(server.url, *connection)).status == 406
    assert (await curl(server.url, *connection, "-H", "Accept: application/json")).status == 406


@pytest.mark.requirement("http.session-unknown")
async def test_the_stream_of_a_session_that_cannot_be_loaded_is_404(curl):
    agent = an_agent()
    agent._definition.change_capabilities = lambda _: accord.v1.AgentCapabilities()
    async with serving(agent) as server:
        connection = await opened(curl, server.url)
        assert (await curl(server.url, *EVENTS, *connection, "-H", "Acp-Session-Id: nobody")).status == 404


@pytest.mark.requirement("http.delete-ends-connection")
async def test_delete_ends_a_connection_and_its_streams(server, curl):
    connection = await opened(curl, server.url)
    reading = asyncio.create_task(curl(server.url, *EVENTS, *connection))
    (link,) = server.app._links.values()
    async with asyncio.timeout(DEADLINE):
        while not link._readers:  # noqa: ASYNC110 - an application has no event for it
            await asyncio.sleep(0)
    assert (await curl(server.url, *EVENTS, *connection)).status == 409
    assert (await curl(server.url, "-X", "DELETE", *connection)).status == 202
    got = await reading
    assert got.status == 200
    assert got.headers["content-type"] == "text/event-stream"
    assert (await curl(server.url, "-X", "DELETE", *connection)).status == 404


async def test_a_message_that_is_posted_twice_with_one_number_is_taken_once(server, curl):
    connection = await opened(curl, server.url)
    (link,) = server.app._links.values()
    for number, sessions in ((1, 1), (1, 1), (3, 2), (2, 3), (2, 3)):
        body = call(number + 1, "session/new", cwd="/", mcpServers=[])
        got = await curl(server.url, *JSON, *connection, "-H", f"Accord-Message: {number}", body=body)
        assert got.status == 202
        assert link.calls.sessions == sessions
    got = await curl(server.url, *JSON, *connection, "-H", "Accord-Message: first", body=call(9, "session/list"))
    assert got.status == 400


async def test_other_methods_are_405_and_other_paths_404(server, curl):
    assert (await curl(server.url, "-X", "PUT", body=b"")).status == 405
    assert (await curl(server.url + "/more", *EVENTS)).status == 404
    assert (await curl(server.url.replace("/acp", "/healthz"))).status == 200


async def test_a_message_past_the_limit_is_413(curl):
    async with serving(App(an_agent(), limits=ServerLimits(body=1000))) as server:
        big = call(1, "initialize", protocolVersion=1, _meta={"x": "y" * 1000})
        assert (await curl(server.url, *JSON, body=big)).status == 413


async def test_a_client_without_access_gets_401_403_or_421(curl, caplog):
    async with serving(an_agent(), access=Access(["s3cret"], hosts=["127.0.0.1"])) as server:
        token = ("-H", "Authorization: Bearer s3cret")
        got = await curl(server.url, *JSON, body=INITIALIZE)
        assert (got.status, got.headers["www-authenticate"]) == (401, "Bearer")
        assert (await curl(server.url, *JSON, *token, body=INITIALIZE)).status == 200
        assert (await curl(server.url, *JSON, *token, "-H", "Origin: http://x.example", body=INITIALIZE)).status == 403
        elsewhere = ("--connect-to", "x.example::127.0.0.1:", *token)
        got = await curl(server.url.replace("127.0.0.1", "x.example"), *JSON, *elsewhere, body=INITIALIZE)
        assert (got.status, b"x.example" in got.body, b"--allow-host" in got.body) == (421, True, True)
    assert "names x.example, which is not among the names of this server (127.0.0.1)" in caplog.text


async def test_another_users_connection_is_404(curl):
    async with serving(an_agent(), access=Access({"a": "ada", "b": "bob"})) as server:
        got = await curl(server.url, *JSON, "-H", "Authorization: Bearer a", body=INITIALIZE)
        connection = ("-H", f"Acp-Connection-Id: {got.headers['acp-connection-id']}")
        assert (await curl(server.url, "-X", "DELETE", *connection, "-H", "Authorization: Bearer b")).status == 404
        assert (await curl(server.url, "-X", "DELETE", *connection, "-H", "Authorization: Bearer a")).status == 202


async def test_too_many_connections_are_503(curl):
    async with serving(App(an_agent(), limits=ServerLimits(connections=1))) as server:
        await opened(curl, server.url)
        assert (await curl(server.url, *JSON, body=INITIALIZE)).status == 503
