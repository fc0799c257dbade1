"""The HTTP/1.1 client reading valid and invalid responses from a scripted server over real sockets."""

import asyncio
import sys
from contextlib import asynccontextmanager

import pytest

from accord.http import serving as serving_agent
from accord.http.client.client_socket import UNREAD, Broken, ClientSocket
from accord.http.client.connection_pool import Http1Client
from tests.http.talking import an_agent, editor_of, transport_to
from tests.waiting import eventually

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-One:  1 \r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-One: 1\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: 1\r\n\r\n"
)


@asynccontextmanager
async def serving(serve):
    """A connection to a server that does this with each."""
    tasks = set()

    async def until_it_ends(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async with await asyncio.start_server(until_it_ends, "127.0.0.1", 0) as listening:
        connection = Http1Client(
            await ClientSocket.open("127.0.0.1", listening.sockets[0].getsockname()[1], None, 10), lambda *_: None
        )
        try:
            yield connection
        finally:
            connection.close()
            await connection.wait_closed()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks)


def server(*answers, cut=0, hang_up=True):
    """A connection to a server that says one of these after another, each when it has read a request."""

    async def serve(reader, writer):
        for answer in answers:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"content-length: " in head:
                await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
            for start in range(0, len(answer), cut or len(answer) or 1):
                writer.write(answer[start : start + (cut or len(answer))])
                await writer.drain()
        if not hang_up:
            await reader.read()

    return serving(serve)


async def ask(connection, body=b"", method="POST"):
    headers = [("host", "here"), ("content-length", str(len(body)))]
    response = await connection.request(method, "/acp", headers, body)
    return response, await response.body(1_000_000)


@pytest.mark.parametrize("cut", [0, 1, 7])
@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + GOOD,
        CHUNKED,
        b"HTTP/1.1 200 OK\r\nX-One: 1\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nX-One: 1\r\nContent-Length: 5\r\n\r\nhello",
    ],
)
async def test_a_response_is_read_wherever_its_bytes_are_cut(answer, cut):
    async with server(answer, cut=cut) as connection:
        response, body = await ask(connection, b"x")
        assert (response.status, response.header("x-one"), body) == (200, "1", b"hello")


async def test_a_connection_is_reused():
    answers = [GOOD, b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n", GOOD]
    async with server(*answers, hang_up=False) as connection:
        for answer in answers:
            assert connection.is_usable
            response, body = await ask(connection, b"x" * 1000)
            assert (b"%d" % response.status in answer, body in answer) == (True, True)
        assert connection.is_usable


@pytest.mark.parametrize("closing", [b"HTTP/1.1 200 OK\r\nConnection: close\r\n", b"HTTP/1.0 200 OK\r\n"])
async def test_a_connection_that_the_server_will_close_is_not_reused(closing):
    async with server(closing + b"Content-Length: 2\r\n\r\nok", hang_up=False) as connection:
        assert (await ask(connection))[1] == b"ok"
        assert not connection.is_usable


@pytest.mark.parametrize("more", [b"HTTP/1.1 408 Request Timeout\r\n\r\n", b"x"])
async def test_a_connection_with_unexpected_bytes_is_not_reused(more):
    async with server(GOOD + more, hang_up=False) as connection:
        assert (await ask(connection))[1] == b"hello"
        assert not connection.is_usable


async def test_leaving_a_response_unread_closes_its_connection():
    async with server(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello", hang_up=False) as connection:
        response = await connection.request("GET", "/acp", [("host", "here")], b"")
        await response.close()
        assert not connection.is_usable


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "closed the connection before it answered"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "closed the connection before it answered"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "closed the connection within a response"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "closed the connection within a response",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n",
            "invalid HTTP response: ",
        ),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "invalid HTTP response: "),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            "invalid HTTP response: ",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
            "invalid HTTP response: unsupported Transfer-Encoding",
        ),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "invalid HTTP response: unexpected 101"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "invalid HTTP response: headers are too long"),
    ],
)
async def test_an_invalid_or_incomplete_response_raises_an_error(answer, problem):
    async with server(answer) as connection:
        with pytest.raises(Broken, match=problem):
            await ask(connection, b"x")
        assert not connection.is_usable


async def test_a_response_may_arrive_before_the_request_was_received():
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
        await asyncio.get_running_loop().create_future()  # and reads no more

    async with serving(serve) as connection:
        response, body = await ask(connection, b"x" * 30_000_000)
        assert (response.status, body) == (413, b"no!")
        assert not connection.is_usable


@pytest.mark.parametrize(("target", "value"), [("/acp", "a\r\nb: c"), ("/a cp", "a"), ("/a\r\nb: c", "a"), ("/ä", "a")])
async def test_line_breaks_in_a_target_or_a_header_are_refused(target, value):
    async with server(GOOD) as connection:
        with pytest.raises(Broken, match="invalid request") as caught:
            await connection.request("GET", target, [("x", value)], b"")
        assert not caught.value.was_sent
        assert (await ask(connection))[1] == b"hello"


async def test_a_client_that_reads_nothing_makes_the_server_wait():
    size = 30_000_000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
    async with server(answer, hang_up=False) as connection:
        response = await connection.request("GET", "/acp", [("host", "here")], b"")
        wire = connection._socket
        await eventually(lambda: wire._size > UNREAD)
        for _ in range(100):
            await asyncio.sleep(0)
        assert wire._size <= 2 * UNREAD  # one read more than the bound
        assert sum([len(chunk) async for chunk in response.chunks]) == size


async def test_opening_a_session_looks_at_few_connections_however_many_are_open():
    looks = 0

    def count(frame, event, argument):
        nonlocal looks
        looks += event == "call" and frame.f_code is Http1Client.is_usable.fget.__code__

    async with serving_agent(an_agent()) as server, editor_of(transport_to(server.url, "http1")) as editor:
        for _ in range(60):
            await editor.open_session()
        sys.setprofile(count)
        try:
            for _ in range(20):
                await editor.open_session()
        finally:
            sys.setprofile(None)
    assert 0 < looks < 20 * 10


async def test_a_response_that_is_closed_late_leaves_the_next_request_alone():
    """A response without a body is over at once, so another request may be under way when its owner closes it."""
    is_closed = asyncio.Event()

    async def serve(reader, writer):
        await reader.readuntil(b"one")
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        await reader.readuntil(b"two")
        await is_closed.wait()
        writer.write(GOOD)
        await reader.read()

    async with serving(serve) as connection:
        accepted = await connection.request("POST", "/", [("content-length", "3")], b"one")
        asking = asyncio.create_task(connection.request("POST", "/", [("content-length", "3")], b"two"))
        await eventually(lambda: connection.busy)
        await accepted.close()
        is_closed.set()
        assert await (await asking).body(100) == b"hello"
