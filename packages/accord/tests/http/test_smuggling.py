"""No request passes hidden in another: what our server reads, nginx before it and h11 read the same way, or refuse."""

import asyncio
from contextlib import asynccontextmanager

import h11
import pytest

from accord.http import serving
from accord.http.h1 import Bad, BodyPart, RequestHead, RequestReader
from tests.http.shapes import HIDDEN, SHAPES
from tests.http.talking import an_agent
from tests.http.test_proxy import NGINX, free_ports, listens
from tests.waiting import eventually

MALFORMED = "400"
"""Requests with this answer may have been refused before they were logged."""

SILENCE = 0.3
"""Seconds without a byte after which all answers of a case have come; a late one is still counted in the logs."""


def read_by_us(data):
    """The requests that end in these bytes, each with its body."""
    reader, requests, body = RequestReader(), [], b""
    for item in reader.feed(data):
        if isinstance(item, RequestHead):
            body = b""
            if not item.has_body:
                requests.append((item.method, item.target, b""))
            else:
                head = item
        elif isinstance(item, BodyPart):
            body += item.data
            if item.is_last:
                requests.append((head.method, head.target, body))
        elif isinstance(item, Bad):
            break
    return requests


def read_by_h11(data):
    connection, requests = h11.Connection(h11.SERVER), []
    connection.receive_data(data)
    try:
        while isinstance(head := connection.next_event(), h11.Request):
            body = b""
            while isinstance(part := connection.next_event(), h11.Data):
                body += bytes(part.data)
            if not isinstance(part, h11.EndOfMessage):
                break
            requests.append((head.method, head.target, body))
            connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
    except h11.ProtocolError:
        pass
    return requests


@pytest.mark.parametrize("shape", SHAPES)
def test_requests_that_h11_reads_too_are_read_the_same_way(shape):
    ours, theirs = read_by_us(SHAPES[shape]), read_by_h11(SHAPES[shape])
    both = min(len(ours), len(theirs))
    assert ours[:both] == theirs[:both]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_request_is_read_the_same_way_wherever_it_is_cut(shape):
    reader, whole = RequestReader(), RequestReader().feed(SHAPES[shape])
    pieces = []
    for byte in SHAPES[shape]:
        pieces += reader.feed(bytes([byte]))
        if any(isinstance(item, Bad) for item in pieces):
            break
    heads = [item for item in pieces if isinstance(item, RequestHead)]
    assert heads == [item for item in whole if isinstance(item, RequestHead)]
    assert isinstance(pieces[-1], Bad) == isinstance(whole[-1], Bad)


CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
    log_format seen '$request_method $upstream_status';
    access_log {folder}/seen seen;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    ignore_invalid_headers {ignoring};
    underscores_in_headers on;
    upstream agent {{
        server 127.0.0.1:{upstream};
        keepalive 1;
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://agent;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Connection "";
            proxy_request_buffering {buffering};
            proxy_buffering off;
            proxy_ignore_client_abort on;
        }}
    }}
}}
"""


@asynccontextmanager
async def nginx_before(server, folder, *, buffering, ignoring):
    """nginx, which keeps one connection to this server for all its clients; gives its port."""
    upstream = server.url.rpartition(":")[2].partition("/")[0]
    [port] = free_ports(1)
    known = {"folder": folder, "port": port, "upstream": upstream, "buffering": buffering, "ignoring": ignoring}
    (folder / "nginx.conf").write_text(CONFIGURATION.format(**known))
    process = await asyncio.create_subprocess_exec(
        NGINX, "-c", folder / "nginx.conf", "-e", folder / "errors", stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await eventually(lambda: listens(port))
        yield port
    finally:
        process.terminate()
        await process.wait()


def groups(items, size):
    return [items[start : start + size] for start in range(0, len(items), size)]


async def said(port, data, enough=None):
    """All that is answered, until the end, a silence, or these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = b""
    try:
        writer.write(data)
        while enough is None or enough not in received:
            async with asyncio.timeout(SILENCE if enough is None else 30):
                part = await reader.read(65536)
            if not part:
                break
            received += part
    except (OSError, TimeoutError):
        pass
    writer.close()
    return received


@pytest.mark.skipif(NGINX is None, reason="this test has a proxy before the server: install nginx")
@pytest.mark.parametrize(("buffering", "ignoring"), [("on", "on"), ("off", "off")])
async def test_nginx_and_our_server_agree_which_requests_there_are(tmp_path, caplog, buffering, ignoring):
    async with (
        serving(an_agent()) as server,
        nginx_before(server, tmp_path, buffering=buffering, ignoring=ignoring) as port,
    ):
        for group in groups(list(SHAPES), 10):
            await asyncio.gather(*(said(port, SHAPES[shape]) for shape in group))
            answer = await said(port, HIDDEN, enough=b"ok")
            assert answer.startswith(b"HTTP/1.1 200"), f"after {group} the next client got {answer[:200]!r}"
        # A client leaves after a silence, and on a busy machine its request is then still on its way. nginx finishes
        # it and logs it (proxy_ignore_client_abort), a moment after the server or before it.
        await eventually(lambda: passed_by_nginx(tmp_path / "seen") == read_by_server(caplog))
    assert len(passed_by_nginx(tmp_path / "seen")) > len(SHAPES) / 2  # nginx refuses the other shapes itself


def passed_by_nginx(log):
    """The methods of the requests that nginx passed on and that were answered, in order of the alphabet."""
    told = [line.split(" ", 1) for line in log.read_text().splitlines()]
    return sorted(method for method, status in told if status.isdigit() and status != MALFORMED)


def read_by_server(caplog):
    """The methods of the requests that the server read, in order of the alphabet."""
    read = [record.args[0] for record in caplog.records if record.name == "accord.http.access"]
    return sorted(record.method for record in read if str(record.status) != MALFORMED)
