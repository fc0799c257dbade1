"""Agents behind a URL with the official SDK's names: the server and the client's streams, over real sockets."""

import asyncio
import re
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

import accord
from accord.compat import acp
from accord.compat.acp.http import create_http_stream
from accord.compat.acp.http.asgi import create_asgi_app
from accord.compat.acp.http.client import AcpHttpStatusError
from accord.compat.acp.ws import create_websocket_stream
from accord.compat.acp.ws.client import MemoryAcpCookieStore

PAGE = Path(__file__).parents[2] / "docs/from-the-official-sdk.md"


class Agent(acp.Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, **_):
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, **_):
        return acp.NewSessionResponse(session_id="one")

    async def prompt(self, session_id, prompt, **_):
        if prompt[0].text == "read":
            file = await self.client.read_text_file(session_id=session_id, path="/a")
            await self.client.session_update(session_id, acp.update_agent_message_text(file.content))
        for number in range(20):
            await self.client.session_update(session_id, acp.update_agent_message_text(f" {number}"))
        return acp.PromptResponse(stop_reason="end_turn")


class Client(acp.Client):
    def __init__(self):
        self.said = []

    async def session_update(self, update, **_):
        self.said.append(update.content.text)

    async def read_text_file(self, path, **_):
        return acp.ReadTextFileResponse(content=f"the text of {path}")


def make_agent(_):
    return Agent()


async def sse_or_socket(url, scheme):
    if scheme == "http":
        return create_http_stream(url)
    return await create_websocket_stream(url.replace("http", "ws", 1))


@asynccontextmanager
async def served(agent_factory):
    """The URL of an ASGI server with this agent."""
    async with listening_with(create_asgi_app(agent_factory)) as url:
        yield url


@asynccontextmanager
async def listening_with(application):
    """The URL of an ASGI server with this application."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(application, log_level="error", lifespan="on", ws="websockets-sansio")
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/anywhere"
        finally:
            server.should_exit = True
            await running


def refused_port():
    """A port at which nothing listens, kept by a socket so that no other process gets it."""
    kept = socket.socket()
    kept.bind(("127.0.0.1", 0))
    return kept, kept.getsockname()[1]


@pytest.fixture(params=["http", "ws"])
def scheme(request):
    return request.param


async def test_a_turn_goes_to_an_agent_of_the_official_sdk_behind_a_url(scheme):
    client = Client()
    async with served(make_agent) as url:
        stream = await sse_or_socket(url, scheme)
        async with acp.connect_to_agent(client, stream) as agent:
            assert (await agent.initialize(protocol_version=1)).protocol_version == 1
            session = await agent.new_session(cwd="/", mcp_servers=[])
            answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("read")])
    assert answer.stop_reason == "end_turn"
    assert client.said == ["the text of /a", *(f" {number}" for number in range(20))]


async def test_our_own_client_reaches_such_a_server(scheme, tmp_path):
    async with served(make_agent) as url:
        where = url.replace("http", scheme, 1)
        async with accord.connect(where.replace("/anywhere", "/acp"), accord.Client("test")) as remote:
            session = await remote.new_session(tmp_path)
            assert (await session.prompt("count")).text == "".join(f" {number}" for number in range(20))


async def test_each_connection_has_an_agent_of_its_own(scheme):
    made = []

    def make(connection):
        made.append(Agent())
        return made[-1]

    async with served(make) as url:
        for _ in range(2):
            stream = await sse_or_socket(url, scheme)
            async with acp.connect_to_agent(Client(), stream) as agent:
                await agent.initialize(protocol_version=1)
    assert len(made) == 2
    assert made[0].client is not made[1].client


async def test_a_program_sends_and_receives_messages_itself(scheme):
    async with served(make_agent) as url:
        stream = await sse_or_socket(url, scheme)
        params = {"protocolVersion": 1, "clientCapabilities": {}}
        await stream.send({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params})
        answer = await stream.receive()
        await stream.close()
        assert (answer["id"], answer["result"]["protocolVersion"]) == (7, 1)
        assert await stream.receive() is None
        with pytest.raises(ConnectionError, match="closed"):
            await stream.send({"jsonrpc": "2.0", "method": "x"})


async def test_a_request_to_a_server_that_is_not_there_fails():
    kept, port = refused_port()
    with kept:
        async with acp.connect_to_agent(Client(), create_http_stream(f"http://127.0.0.1:{port}/acp")) as agent:
            with pytest.raises(ConnectionError, match=f"127.0.0.1:{port}"):
                await agent.initialize(protocol_version=1)
        with pytest.raises(ConnectionError, match="cannot be reached"):
            await create_websocket_stream(f"ws://127.0.0.1:{port}/acp")


async def test_a_stream_is_for_one_connection():
    stream = create_http_stream("http://127.0.0.1:9/acp")
    async with acp.connect_to_agent(Client(), stream):
        with pytest.raises(RuntimeError, match="belongs to a connection already"):
            acp.connect_to_agent(Client(), stream)


async def test_the_server_of_the_page_for_users_answers():
    program = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[-1]
    names = {}
    exec(program, names)
    async with (
        listening_with(names["application"]) as url,
        acp.connect_to_agent(Client(), create_http_stream(url)) as agent,
    ):
        assert (await agent.initialize(protocol_version=1)).protocol_version == 1


def test_another_kind_of_http_client_is_refused():
    with pytest.raises(TypeError, match=r"client must be an httpx\.AsyncClient or None, got object"):
        create_http_stream("http://127.0.0.1:9/acp", client=object())


async def test_a_turn_goes_through_a_client_of_httpx_with_its_headers():
    seen = []

    async def note(request):
        seen.append((request.method, request.headers["x-team"]))

    client = Client()
    hooks = {"request": [note]}
    async with served(make_agent) as url, httpx.AsyncClient(headers={"X-Team": "blue"}, event_hooks=hooks) as http:
        async with acp.connect_to_agent(client, create_http_stream(url, client=http)) as agent:
            await agent.initialize(protocol_version=1)
            session = await agent.new_session(cwd="/", mcp_servers=[])
            answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("read")])
        assert not http.is_closed
    assert answer.stop_reason == "end_turn"
    assert client.said == ["the text of /a", *(f" {number}" for number in range(20))]
    assert {*seen} == {("POST", "blue"), ("GET", "blue"), ("DELETE", "blue")}


async def test_a_client_of_httpx_that_reaches_no_server_says_where():
    kept, port = refused_port()
    with kept:
        async with (
            httpx.AsyncClient() as http,
            acp.connect_to_agent(Client(), create_http_stream(f"http://127.0.0.1:{port}/acp", client=http)) as agent,
        ):
            with pytest.raises(ConnectionError, match=f"127.0.0.1:{port}"):
                await agent.initialize(protocol_version=1)


@pytest.mark.parametrize("through_httpx", [False, True], ids=["ours", "httpx"])
async def test_a_program_that_sends_messages_itself_learns_that_one_was_refused(through_httpx):
    async with served(make_agent) as url, httpx.AsyncClient() as http:
        stream = create_http_stream(url, client=http if through_httpx else None)
        await stream.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
        assert (await stream.receive())["id"] == 1
        with pytest.raises(AcpHttpStatusError, match="refused a message with status 400") as refused:
            await stream.send({"jsonrpc": "2.0", "result": {}})
        await stream.close()
    assert refused.value.status_code == 400


def test_a_store_of_cookies_forgets_what_expires():
    store = MemoryAcpCookieStore()
    store.store_set_cookies(["home=seven; Path=/", "gone=1"])
    store.store_set_cookie("gone=; Max-Age=0")
    assert (store.cookie_header(), len(store)) == ("home=seven", 1)
    store.clear()
    assert (store.cookie_header(), len(store)) == (None, 0)


def test_the_modules_are_imported_without_the_extra():
    blocked = "import sys; sys.modules |= dict.fromkeys(['httptools', 'websockets']); "
    code = f"{blocked}import accord.compat.acp.http as h, accord.compat.acp.http.asgi, accord.compat.acp.ws.server\n"
    call = "try: h.create_http_stream('http://127.0.0.1/acp')\nexcept Exception as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code + call], capture_output=True, text=True, check=True)
    assert "connecting to a URL needs the extra 'http'" in done.stdout
