"""The server behind nginx as the documentation configures it, over every transport, with TLS and HTTP/2."""

import asyncio
import shutil
import socket
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accord.http import ServerLimits, connect_transport, serving
from tests.http.talking import an_agent, editor_of, nobody_is_connected
from tests.waiting import DEADLINE, eventually

NGINX = shutil.which("nginx", path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="this test has a proxy before the server: install nginx")

DOCUMENTATION = Path(__file__).parents[4] / "docs/deploying.md"

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {upgrade}
    server {{
        listen 127.0.0.1:{plain};
        {location}
    }}
    server {{
        listen 127.0.0.1:{tls} ssl http2;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        {more}
        {location}
    }}
}}
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [it.getsockname()[1] for it in sockets]
    for it in sockets:
        it.close()
    return ports


def listens(port):
    with socket.socket() as it:
        return it.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def proxy_of(server, folder, certificate, more=""):
    """nginx before this server, with `more` settings for TLS; gives its ports, without TLS and with it."""
    documented = DOCUMENTATION.read_text().split("```nginx\n")[1].split("```")[0]
    upgrade, _, location = documented.rstrip().removesuffix("}").partition("server {\n")
    assert "http://127.0.0.1:8000" in location
    location = location.replace("http://127.0.0.1:8000", server.url.removesuffix("/acp"))
    plain, tls = free_ports(2)
    known = {
        "folder": folder,
        "upgrade": upgrade,
        "location": location,
        "certificate": certificate[0],
        "key": certificate[1],
        "more": more,
    }
    (folder / "nginx.conf").write_text(CONFIGURATION.format(plain=plain, tls=tls, **known))
    process = await asyncio.create_subprocess_exec(
        NGINX, "-c", folder / "nginx.conf", "-e", folder / "errors", stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await eventually(lambda: listens(tls))
        yield plain, tls
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture(params=["ws", "wss", "http", "https over HTTP/1.1", "https over HTTP/2"])
async def way_through(request, certificate, tmp_path):
    """A server that shows signs of life often, and transports to it through the proxy."""
    scheme, _, over = request.param.partition(" over ")
    async with (
        serving(an_agent(), limits=ServerLimits(keepalive=0.05, heartbeat=0.05)) as server,
        proxy_of(server, tmp_path, certificate) as (plain, tls),
    ):
        trusting = ssl.create_default_context(cafile=certificate[0])
        options = {"http2": over == "HTTP/2"} if over else {}
        port, options = (tls, {"tls": trusting, **options}) if scheme.endswith("s") and scheme != "ws" else (plain, {})
        yield server, lambda: connect_transport(f"{scheme}://127.0.0.1:{port}/acp", **options)
        await nobody_is_connected(server)


async def test_a_conversation_passes_a_proxy(way_through):
    _, transport = way_through
    async with editor_of(transport()) as editor, editor_of(transport()) as other:
        sessions = [await editor.open_session() for _ in range(3)]
        theirs = await other.open_session()
        await asyncio.gather(
            *(editor.prompt(session, "count 300") for session in sessions), other.prompt(theirs, "count 300")
        )
        counted = "".join(f"{number} " for number in range(300))
        assert [editor.text(session) for session in sessions] == [counted] * 3
        assert other.text(theirs) == counted
        await editor.prompt(sessions[0], "ask")
        assert editor.text(sessions[0]).endswith("allowed")


async def test_updates_pass_a_proxy_without_delay(way_through):
    """A proxy that gathers would keep them until the turn ends, which this one never does by itself."""
    _, transport = way_through
    async with editor_of(transport()) as editor:
        session = await editor.open_session()
        turn = asyncio.create_task(editor.prompt(session, "wait"))
        async with asyncio.timeout(DEADLINE):
            await editor.first_words.wait()
        assert editor.text(session) == "waiting"
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn


async def test_a_large_prompt_passes_a_proxy(way_through):
    _, transport = way_through
    async with editor_of(transport()) as editor:
        session = await editor.open_session()
        words = ("word" * 250 + " ") * 1_000
        await editor.prompt(session, words)
        assert editor.text(session) == words


async def test_event_streams_outlive_a_proxy_that_ends_connections_after_a_few_requests(certificate, tmp_path, caplog):
    async with (
        serving(an_agent()) as server,
        proxy_of(server, tmp_path, certificate, "keepalive_requests 4;") as (_, tls),
    ):
        trusting = ssl.create_default_context(cafile=certificate[0])
        async with editor_of(connect_transport(f"https://127.0.0.1:{tls}/acp", tls=trusting, http2=True)) as editor:
            session = await editor.open_session()
            for _ in range(12):
                await editor.prompt(session, "word")
            assert editor.text(session) == "word " * 12
        assert "is resumed" not in caplog.text
        await nobody_is_connected(server)
