"""Random requests: the server answers each, serves its other clients, and keeps nothing.

The application is asked directly, thousands of times, by hypothesis; then a real server over sockets, by a generator
with a seed. `--seeds 20000` asks more, `--seed 4711` the one again that failed.
"""

import asyncio
import json
import logging
import random
import struct

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord.http import App, ServerLimits, serving
from accord.http.client.connection_pool import ConnectionPool
from accord.transports import End
from tests.http.talking import an_agent, editor_of, nobody_is_connected, transport_to
from tests.waiting import DEADLINE

EXAMPLES = 40
PROGRAMS = 40

INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
OURS = b"<ours>"
"""Stands for the id of a connection, in headers."""

METHODS = (
    "initialize session/new session/load session/resume session/fork session/close session/delete session/list "
    "session/prompt session/cancel session/set_mode authenticate $/cancel_request _example.com/x fs/read_text_file"
).split()

# What is sent

ids = st.one_of(st.integers(), st.text(max_size=5), st.none(), st.floats(), st.just({}), st.just([1]))
sessions = st.sampled_from(["s", "t", "", "\ud83d", "x" * 5000, 7, None])
params = st.one_of(
    st.just({"cwd": "/project", "mcpServers": []}),
    st.builds(
        lambda s, text: {"sessionId": s, "prompt": [{"type": "text", "text": text}]}, sessions, st.text(max_size=9)
    ),
    st.builds(lambda s: {"sessionId": s, "cwd": "/project", "mcpServers": []}, sessions),
    st.builds(lambda request_id: {"requestId": request_id}, ids),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=9
    ),
)
messages = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0", 2])},
    optional={
        "id": ids,
        "method": st.sampled_from(METHODS) | st.text(max_size=9),
        "params": params,
        "result": params,
        "error": st.sampled_from([{"code": -32603, "message": "no"}, {}, "odd", None]),
    },
)


def encoded(message):
    return json.dumps(message).encode("utf-8", "surrogatepass")


bodies = st.one_of(
    messages.map(encoded),
    st.just(INITIALIZE),
    st.builds(lambda message, end: encoded(message)[:end], messages, st.integers(0, 60)),
    st.lists(messages, max_size=3).map(encoded),
    st.binary(max_size=60),
    st.integers(1, 5000).map(lambda depth: b'{"a":' * depth),
    st.integers(1, 5000).map(lambda digits: b'{"jsonrpc":"2.0","id":' + b"9" * digits + b',"method":"session/new"}'),
    st.just(b'{"jsonrpc":"2.0","id":1e999,"method":"session/new"}'),
    st.just(b"x" * 5000),
)
headers = st.lists(
    st.one_of(
        st.tuples(st.just(b"content-type"), st.sampled_from([b"application/json"] * 5 + [b"text/plain", b"\xff;"])),
        st.tuples(
            st.just(b"acp-connection-id"), st.sampled_from([OURS] * 5 + [b"", b"nobody", b"\xff\xfe", b"x" * 9000])
        ),
        st.tuples(st.just(b"acp-session-id"), st.sampled_from([b"s", b"t", b"", b"\xed\xa0\xbd", b"x" * 5000])),
        st.tuples(st.just(b"accept"), st.sampled_from([b"text/event-stream"] * 3 + [b"*/*", b"\x00"])),
        st.tuples(st.just(b"last-event-id"), st.sampled_from([b"0", b"1", b"-1", b"9" * 5000, "٣".encode(), b"x"])),
        st.tuples(st.just(b"content-length"), st.sampled_from([b"5", b"9" * 5000, b"-1", "٣".encode()])),
        st.tuples(st.just(b"accord-message"), st.sampled_from([b"1", b"2", b"-1", b"9" * 5000, b"x"])),
        st.tuples(st.just(b"origin"), st.sampled_from([b"null", b"https://page.example"])),
        st.tuples(st.just(b"authorization"), st.binary(max_size=20)),
        st.tuples(st.binary(min_size=1, max_size=9), st.binary(max_size=9)),
    ),
    max_size=7,
)
requests = st.fixed_dictionaries(
    {
        "type": st.just("http"),
        "method": st.sampled_from(["POST"] * 6 + ["GET"] * 3 + ["DELETE", "PUT", "OPTIONS", "HEAD", "\x00"]),
        "path": st.sampled_from(["/acp"] * 9 + ["/acp/", "/healthz", "/", "", "//acp", "/acp/../acp", "/\ud83d"]),
        "headers": headers,
        "parts": st.lists(bodies, max_size=3),
        "is_whole": st.booleans() | st.just(True),
    }
)
sockets = st.fixed_dictionaries(
    {
        "type": st.just("websocket"),
        "path": st.sampled_from(["/acp"] * 9 + ["/"]),
        "headers": headers,
        "parts": st.lists(st.one_of(bodies, bodies.map(lambda body: body.decode("utf-8", "replace"))), max_size=6),
    }
)

# The application, asked directly


class Asked:
    """One request or socket, as an ASGI server would hand it over; it leaves once it has its answer."""

    def __init__(self, told, ours):
        self.scope = {key: told[key] for key in ("type", "path", "headers")} | {"query_string": b"", "root_path": ""}
        self.scope["method"] = told.get("method", "GET")
        self.scope["headers"] = [(name, ours if value is OURS else value) for name, value in told["headers"]]
        kind = told["type"]
        self.coming = []
        if kind == "websocket":
            self.coming.append({"type": "websocket.connect"})
            for part in told["parts"]:
                name = "text" if isinstance(part, str) else "bytes"
                self.coming.append({"type": "websocket.receive", name: part})
        else:
            parts = told["parts"] or [b""]
            for number, part in enumerate(parts):
                more = not (told["is_whole"] and number == len(parts) - 1)
                self.coming.append({"type": "http.request", "body": part, "more_body": more})
        self.gone = {"type": f"{kind}.disconnect", "code": 1005}
        self.may_leave = asyncio.Event()
        if kind == "websocket" or not told["is_whole"]:
            self.may_leave.set()
        self.got = []

    async def receive(self):
        if self.coming:
            return self.coming.pop(0)
        await self.may_leave.wait()
        return self.gone

    async def send(self, message):
        self.got.append(message)
        if message["type"].endswith("body"):
            self.may_leave.set()

    async def by(self, app):
        async with asyncio.timeout(DEADLINE):
            await app(self.scope, self.receive, self.send)
        return self

    @property
    def status(self):
        return next((message["status"] for message in self.got if "status" in message), None)

    def header(self, name):
        return dict(self.got[0]["headers"]).get(name)


def post(body, *more):
    return {
        "type": "http",
        "method": "POST",
        "path": "/acp",
        "headers": [(b"content-type", b"application/json"), *more],
        "parts": [body],
        "is_whole": True,
    }


async def a_good_client_is_served(app):
    opened = await Asked(post(INITIALIZE), b"").by(app)
    assert opened.status == 200
    named = (b"acp-connection-id", opened.header(b"acp-connection-id"))
    new = b'{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/project","mcpServers":[]}}'
    assert (await Asked(post(new, named), b"").by(app)).status == 202
    return named[1]


class Errors(logging.Handler):
    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts = []

    def emit(self, record):
        self.texts.append(self.format(record))


async def play(program):
    app = App(an_agent(), limits=ServerLimits(body=4000, connections=20, sessions=3, streams=5))
    before = asyncio.all_tasks()
    ours = await a_good_client_is_served(app)
    for told in program:
        asked = await Asked(told, ours).by(app)
        if told["type"] == "http":
            assert asked.status is not None
            assert asked.status < 500, asked.got
        health = await Asked(
            {"type": "http", "method": "GET", "path": "/healthz", "headers": [], "parts": [], "is_whole": True}, b""
        ).by(app)
        assert health.status == 200
    if app.connections < 20:
        await a_good_client_is_served(app)
    await app.close()
    assert app.connections == 0
    left = asyncio.all_tasks() - before
    if left:
        await asyncio.wait(left, timeout=5)
    assert {task for task in left if not task.done()} == set()


def test_the_application_answers_any_request_and_serves_the_others(pytestconfig):
    @settings(
        max_examples=pytestconfig.option.seeds or EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(requests | requests | requests | sockets, min_size=3, max_size=12))
    def ask(program):
        errors = Errors()
        loggers = [logging.getLogger("accord"), logging.getLogger("asyncio")]
        for logger in loggers:
            logger.addHandler(errors)
        try:
            asyncio.run(play(program))
        finally:
            for logger in loggers:
                logger.removeHandler(errors)
        assert errors.texts == []

    ask()


# A real server, over sockets

HANDSHAKE = (
    b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


VERBS = ("POST", "POST", "GET", "DELETE", "PUT", "CONNECT", "PRI")
TARGETS = ("/acp", "/acp", "/healthz", "*", "/%ff", "http://x/acp")


class Junk:
    """Bytes that a client might send, each kind nearly right."""

    def __init__(self, seed):
        self.dice = random.Random(seed)

    def bytes(self):
        dice = self.dice
        return dice.choice(
            [self.http1, self.http1, self.pipelined, self.http2, self.websocket, self.websocket, self.noise]
        )()

    def noise(self):
        return self.dice.randbytes(self.dice.randrange(1, 3000))

    def cut(self, data):
        """Sometimes a part of it, and sometimes with a wrong byte."""
        if self.dice.random() < 0.2:
            data = data[: self.dice.randrange(len(data) + 1)]
        if data and self.dice.random() < 0.3:
            place = self.dice.randrange(len(data))
            data = data[:place] + self.dice.randbytes(1) + data[place + 1 :]
        return data

    def body(self):
        dice = self.dice
        return dice.choice([INITIALIZE, INITIALIZE[:20], b"[" * 3000, b"{}", b"", dice.randbytes(100), b"x" * 200_000])

    def http1(self):
        dice, body = self.dice, self.body()
        length = dice.choice([len(body), len(body), len(body), len(body) + 5, 10**12, -1])
        lines = [
            f"{dice.choice(VERBS)} {dice.choice(TARGETS)} HTTP/1.1",
            f"Host: {dice.choice(['127.0.0.1', '127.0.0.1', 'x', ''])}",
            f"Content-Type: {dice.choice(['application/json', 'application/json', 'text/plain'])}",
            dice.choice([f"Content-Length: {length}", f"Content-Length: {length}", "Transfer-Encoding: chunked"]),
            *dice.sample(
                [
                    "Acp-Connection-Id: x",
                    "Accept: text/event-stream",
                    "Expect: 100-continue",
                    "Upgrade: h2c",
                    "HTTP2-Settings: !!",
                    "Connection: Upgrade, close",
                    f"X-Long: {'x' * dice.choice([10, 100_000])}",
                    "Host: twice",
                    "Bad Header: x",
                ],
                dice.randrange(4),
            ),
        ]
        return self.cut("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def pipelined(self):
        return b"".join(self.http1() for _ in range(self.dice.randrange(2, 6)))

    def http2(self):
        dice, frames = self.dice, [PREFACE]
        for _ in range(dice.randrange(1, 12)):
            payload = dice.choice(
                [b"", dice.randbytes(dice.randrange(40)), b"\x82\x86\x84\x41\x01x", b"\x83\x87\x44\x04/acp"]
            )
            kind, flags, stream = dice.randrange(12), dice.choice([0, 1, 4, 5]), dice.choice([0, 1, 1, 3, 2, 2**31 - 1])
            frames.append(
                struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload
            )
        return self.cut(b"".join(frames))

    def websocket(self):
        dice, frames = self.dice, [HANDSHAKE]
        for _ in range(dice.randrange(1, 30)):
            payload = dice.choice(
                [INITIALIZE, b"", b"\xff\xfe", dice.randbytes(30), b"\x03\xe8", b"\x00\x05", b"x" * 70_000]
            )
            opcode = dice.choice([0x81, 0x81, 0x01, 0x00, 0x80, 0x82, 0x88, 0x89, 0x89, 0x8A, 0x83, 0xC1])
            size = len(payload)
            head = bytes([size | 0x80]) if size < 126 else b"\xff" + struct.pack(">Q", size)
            if dice.random() < 0.1:
                head = bytes([head[0] & 0x7F]) + head[1:]
            frames.append(bytes([opcode]) + head + b"\x00\x00\x00\x00" + payload)
        return self.cut(b"".join(frames))


async def thrown(server, junk):
    """Send this, in pieces, read what comes for as long as it does at once, and leave, rudely or not."""
    host, _, port = server.url.removeprefix("http://").removesuffix("/acp").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data, dice = junk.bytes(), junk.dice
    try:
        while data:
            piece = dice.choice([len(data), len(data), 1 + len(data) // 3])
            writer.write(data[:piece])
            data = data[piece:]
            await asyncio.wait_for(writer.drain(), DEADLINE)
            await asyncio.sleep(0)
        if dice.random() < 0.5:
            writer.write_eof()
            async with asyncio.timeout(DEADLINE):
                while await reader.read(65536):
                    pass
    except OSError:
        pass  # it had enough of us
    finally:
        if dice.random() < 0.5:
            writer.transport.abort()
        writer.close()


async def test_junk_on_a_socket_does_not_affect_other_connections(pytestconfig, caplog):
    option = pytestconfig.option
    programs = [option.seed] if option.seed is not None else range(min(option.seeds or PROGRAMS, 5000))
    limits = ServerLimits(body=100_000, idle=2.0, arrival=1.0, heartbeat=0.5, abandoned=1.0)
    async with serving(an_agent(), limits=limits) as server, editor_of(transport_to(server.url, "websocket")) as beside:
        session = await beside.open_session()
        health = ConnectionPool(server.url.replace("/acp", "/healthz"))
        for seed in programs:
            try:
                await thrown(server, Junk(seed))
            except TimeoutError:
                pytest.fail(f"the server did not hang up; --seed {seed} shows it")
            response = await asyncio.wait_for(health.request("GET", []), DEADLINE)
            assert (response.status, await response.body(100)) == (200, b"ok"), seed
            await beside.prompt(session, str(seed))
            wrong = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
            assert wrong == [], f"--seed {seed} shows it"
        assert beside.text(session) == "".join(f"{seed} " for seed in programs)
        await health.close()
        for link in list(server.app._links.values()):
            link.finish(End("peer_closed"))
        async with asyncio.timeout(DEADLINE):
            while server.app.connections > 1:  # noqa: ASYNC110 - an application has no event for it
                await asyncio.sleep(0)
    await nobody_is_connected(server)
