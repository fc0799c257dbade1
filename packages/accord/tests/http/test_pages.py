"""Pages of other origins: what a browser is told, and what it then lets a page do."""

import asyncio
import http.client
import http.server
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from contextlib import closing, contextmanager

import pytest
from benchmarks.build import Unavailable
from interop.peers import had

from accord.http import Access, serving
from tests.http.talking import an_agent
from tests.http.test_interop import TYPESCRIPT_REMOTE

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
    assert headers["Access-Control-Allow-Credentials"] == "true"  # the TypeScript SDK's client sends cookies
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


PAGE_OF_THE_SDK = """<!doctype html><title>ACP</title>
<script type="importmap">{"imports": {
  "@agentclientprotocol/sdk": "/modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js",
  "@agentclientprotocol/sdk/experimental/http-client":
    "/modules/@agentclientprotocol/sdk/dist/transports/http-stream.js",
  "@agentclientprotocol/sdk/experimental/ws-client": "/modules/@agentclientprotocol/sdk/dist/transports/ws-stream.js",
  "zod": "/modules/zod/index.js", "zod/v4": "/modules/zod/v4/index.js"
}}</script>
<script type="module">
async function tell(value) { await fetch("/told", { method: "POST", body: JSON.stringify(value) }); }
try {
  const acp = await import("@agentclientprotocol/sdk");
  const { createHttpStream } = await import("@agentclientprotocol/sdk/experimental/http-client");
  const { createWebSocketStream } = await import("@agentclientprotocol/sdk/experimental/ws-client");
  const url = new URLSearchParams(location.search).get("url");
  const stream = url.startsWith("ws") ? createWebSocketStream(url, { protocols: [] }) : createHttpStream(url);
  let heard = "";
  const stop = await acp
    .client({ name: "page" })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      if (params.update.sessionUpdate === "agent_message_chunk") heard += params.update.content.text;
    })
    .connectWith(stream, async (agent) => {
      await agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
      const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: "/project", mcpServers: [] });
      const prompt = [{ type: "text", text: "count 50" }];
      return (await agent.request(acp.methods.agent.session.prompt, { sessionId, prompt })).stopReason;
    });
  await tell({ stop, heard });
} catch (error) {
  await tell({ error: String(error) });
}
</script>"""


@contextmanager
def page_served(modules):
    """A server of the page and of the SDK's modules: its origin, and what its page tells."""
    told = queue.Queue()

    class Page(http.server.SimpleHTTPRequestHandler):
        extensions_map = {".js": "text/javascript"}  # noqa: RUF012

        def __init__(self, *given):
            super().__init__(*given, directory=modules)

        def do_GET(self):
            if self.path.startswith("/modules/"):
                self.path = self.path.removeprefix("/modules")
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE_OF_THE_SDK.encode())

        def do_POST(self):
            told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{pages.server_port}", told
        pages.shutdown()


@contextmanager
def chromium(url, profile):
    """A headless browser that shows this page."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium is installed (on Debian: apt-get install chromium)")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}")
    log = (profile / "log").open("wb")
    with log, subprocess.Popen([program, *options, url], stdout=log, stderr=log, start_new_session=True) as browser:
        try:
            yield
        finally:
            os.killpg(browser.pid, signal.SIGKILL)


@pytest.mark.interop
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_listed", [True, False], ids=["listed", "not listed"])
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_the_typescript_sdk_in_a_browser_uses_a_server_that_lists_its_page(scheme, is_listed, tmp_path):
    try:
        sdk = await asyncio.to_thread(had, TYPESCRIPT_REMOTE)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with page_served(sdk.folder / "node_modules") as (origin, told):
        access = Access(origins=[origin] if is_listed else [])
        async with serving(an_agent(), access=access) as server:
            page = f"{origin}/?url={server.url.replace('http', scheme, 1)}"
            with chromium(page, tmp_path):
                result = await asyncio.to_thread(told.get, timeout=120)
    if is_listed:
        assert result == {"stop": "end_turn", "heard": "".join(f"{number} " for number in range(50))}
    else:
        assert set(result) == {"error"}
