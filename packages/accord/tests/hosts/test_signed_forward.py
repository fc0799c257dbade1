"""Signatures between hosts: what they cover, over the real stacks, and that each is taken once."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import accord
from accord.h2.h2_frames import DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RST_STREAM, H2FrameReader
from accord.hosts.peers import HEALTH, METRICS, PATH
from accord.hosts.signed_forward import (
    AHEAD,
    FORWARDED,
    GOOD_FOR,
    WEBSOCKET,
    BadSignature,
    SignedForward,
    Signer,
    TakenNonces,
    forwarded_headers,
)
from accord.http.server.agent_host import Host
from accord.http.server.serve import serving
from accord.jsonrpc.wire_messages import encode_response, parse
from accord.transports import Receiver
from tests.hosts.hosting import INITIALIZE, JSON, KEY as TEXT_KEY, editor_on
from tests.http.talking import an_agent
from tests.waiting import DEADLINE, eventually

KEY, OTHER = TEXT_KEY.encode(), b"o" * 32
TEXT = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=20)
HEADERS_OF_CLIENTS = st.dictionaries(st.sampled_from([*FORWARDED, "authorization", "cookie", "origin"]), TEXT)
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ONE, TWO = Signer([KEY], lambda: "one"), Signer([OTHER, KEY], lambda: "two")


@UNTIMED
@given(owner=st.text(max_size=20), headers=HEADERS_OF_CLIENTS, body=st.binary(max_size=20), observes=st.booleans())
def test_what_one_host_signs_another_verifies(owner, headers, body, observes):
    forward = ONE.forward("two", 12.5, owner, body, observes=observes)
    assert TWO.verify(ONE.sign(forward, "POST", PATH, headers), "POST", PATH, headers) == forward
    assert (forward.owner, forward.observes, forward.length) == (owner, observes, len(body))


@UNTIMED
@given(HEADERS_OF_CLIENTS)
def test_credentials_are_not_forwarded(headers):
    assert forwarded_headers(headers) == {name: headers[name] for name in headers if name in FORWARDED}
    assert not {"authorization", "cookie", "origin"} & forwarded_headers(headers).keys()


@UNTIMED
@given(headers=HEADERS_OF_CLIENTS, other=HEADERS_OF_CLIENTS)
def test_a_signature_is_for_one_request_only(headers, other):
    value = ONE.sign(ONE.forward("two", 1.0), "GET", PATH, headers)
    others = [("POST", PATH, headers), (WEBSOCKET, PATH, headers), ("GET", METRICS, headers), ("GET", HEALTH, headers)]
    if forwarded_headers(headers) != forwarded_headers(other):
        others.append(("GET", PATH, other))
    for method, target, used in others:
        with pytest.raises(BadSignature, match="not signed"):
            TWO.verify(value, method, target, used)


@UNTIMED
@given(st.data())
def test_a_changed_signature_is_refused(data):
    value = ONE.sign(ONE.forward("two", 1.0, "ada", b"body"), "POST", PATH, {})
    place = data.draw(st.integers(0, len(value) - 1))
    letter = data.draw(st.characters().filter(lambda it: it != value[place]))
    with pytest.raises(BadSignature):
        TWO.verify(value[:place] + letter + value[place + 1 :], "POST", PATH, {})


def test_a_value_with_half_a_surrogate_pair_is_not_signed():
    value = ONE.sign(ONE.forward("two", 1.0, "ada"), "POST", PATH, {})
    for changed in ("\ud800" + value, value + "\ud800"):
        with pytest.raises(BadSignature, match="not signed"):
            TWO.verify(changed, "POST", PATH, {})


def test_a_role_cannot_be_exchanged():
    value = ONE.sign(ONE.forward("two", 1.0, "ada", observes=True), "POST", PATH, {})
    with pytest.raises(BadSignature, match="not signed"):
        TWO.verify(value.replace(" observer ", " owner "), "POST", PATH, {})


@pytest.mark.parametrize(
    ("signer", "receiver", "status", "problem"),
    [
        (Signer([OTHER + b"!"], lambda: "one"), "two", 403, "not signed with the key"),
        (ONE, "three", 404, "connect again"),
    ],
    ids=["another key", "another host"],
)
def test_a_signature_is_refused(signer, receiver, status, problem):
    value = signer.sign(signer.forward(receiver, 1.0), "POST", PATH, {})
    with pytest.raises(BadSignature, match=problem) as caught:
        TWO.verify(value, "POST", PATH, {})
    assert caught.value.status == status


def test_a_peer_proves_its_clock_for_one_question():
    question, another = ONE.forward("two", 0.0), ONE.forward("two", 0.0)
    answered = TWO.sign_clock(123.4567, question)
    accepting = Signer([KEY, OTHER], lambda: "one")
    assert accepting.verify_clock(answered, question) == 123.457
    for wrong, asked in ((answered, another), (answered.replace("123", "124"), question), ("", question)):
        with pytest.raises(BadSignature):
            accepting.verify_clock(wrong, asked)


# Nonces


def forward_at(moment, nonce="a"):
    return SignedForward("one", "two", moment, nonce)


@pytest.mark.parametrize(
    ("late", "status"),
    [(GOOD_FOR - 0.1, None), (GOOD_FOR + 0.1, 503), (-AHEAD + 0.1, None), (-AHEAD - 0.1, 503)],
    ids=["old", "too old", "ahead", "too far ahead"],
)
def test_a_signature_is_good_for_a_while(late, status):
    taken = TakenNonces()
    if status is None:
        taken.take(forward_at(1000.0 - late), 1000.0)
        return
    with pytest.raises(BadSignature) as caught:
        taken.take(forward_at(1000.0 - late), 1000.0)
    assert caught.value.status == status


@UNTIMED
@given(
    most=st.integers(1, 4),
    steps=st.lists(
        st.tuples(st.floats(0, GOOD_FOR), st.floats(-AHEAD, GOOD_FOR), st.integers(0, 12)), min_size=1, max_size=60
    ),
)
def test_no_request_is_taken_twice_and_memory_is_bounded(most, steps):
    """Each step: so much time passes, and a request arrives so late, or one of those before arrives again."""
    nonces, now, sent, taken = TakenNonces(most), 0.0, [], set()
    for passed, late, again in steps:
        now += passed
        forward = sent[-again] if 0 < again <= len(sent) else forward_at(now - late, str(len(sent)))
        sent.append(forward)
        try:
            nonces.take(forward, now)
        except BadSignature:
            continue
        assert forward.nonce not in taken
        taken.add(forward.nonce)
        assert len(nonces._newer) + len(nonces._older) <= 2 * most


def test_a_busy_host_takes_all_that_is_fresh():
    nonces, now = TakenNonces(most=100), 0.0
    for number in range(5_000):
        now += AHEAD / 40
        nonces.take(forward_at(now - AHEAD / 2, str(number)), now)


# Over the real stacks


FILLER = b"\r\n\r\n" + b"?" * 2_000 + b"\r\n\r\n"
"""Completes whatever a server waits for, and is no request."""


class Recording(Host, Receiver):
    """Answers `initialize`, and keeps everything else that its connections send."""

    name = "recording"

    def __init__(self):
        self.got = []
        self.opened = 0

    async def serve(self, transport, owner):  # noqa: ARG002
        self.opened += 1
        self._transport, ended = transport, asyncio.Event()
        self.ended = lambda _: ended.set()
        await transport.start(self)
        await ended.wait()

    def received(self, frames):
        for frame in frames:
            message = parse(frame)
            if getattr(message, "method", "") == "initialize":
                self._transport.send([encode_response(message.id, b'{"protocolVersion":1}')])
            else:
                self.got.append(bytes(frame))

    def paused(self): ...

    def resumed(self): ...


class Attacker:
    """Everything between two hosts: reads what one sends, and sends to the other what it likes."""

    def __init__(self, server, agent):
        host = server.app.cluster.membership.host
        self.receiver, self.agent = host.id, agent
        self._address = host.address.rsplit(":", 1)
        self._signer = Signer([KEY], lambda: "sender")

    async def open(self):
        """Open a connection in the name of an owner, as a host does."""
        head = [*JSON, ("accord-hop", self.signed("POST", dict(JSON), INITIALIZE))]
        answered = await self.http1(self.written("POST", head, INITIALIZE))
        self.connection = next(
            line.split(b": ")[1].decode() for line in answered.split(b"\r\n") if line.startswith(b"acp-connection-id")
        )
        self.headers = {"content-type": "application/json", "acp-connection-id": self.connection}

    def signed(self, method, headers, body=b"", target=PATH):
        forward = self._signer.forward(self.receiver, time.monotonic(), "ada", body)
        return self._signer.sign(forward, method, target, headers)

    def post(self, body):
        """The headers of a POST of this body, with a fresh signature."""
        return [*self.headers.items(), ("accord-hop", self.signed("POST", self.headers, body))]

    def written(self, method, headers, body=b"", target=PATH):
        length = [("content-length", str(len(body)))] if body else []
        lines = [f"{method} {target} HTTP/1.1", "host: x", *(f"{name}: {value}" for name, value in [*headers, *length])]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    async def http1(self, *parts, filler=FILLER):
        """Send these parts one after the other; returns all that comes back. The filler ends the connection."""
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            async with asyncio.timeout(DEADLINE):
                for part in (*parts[:-1], parts[-1] + filler):
                    writer.write(part)
                    await writer.drain()
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.transport.abort()

    async def http2(self, frames, *, ends=True):
        """Send these frames; whether they were accepted. Unless they end a request, nonsense follows."""
        reader, writer = await asyncio.open_connection(*self._address)
        read = H2FrameReader(expects_preface=False)
        try:
            async with asyncio.timeout(DEADLINE):
                writer.write(PREFACE + frame(4, 0, 0, b"") + frames + (b"" if ends else b"\xff" * 40_000))
                while data := await reader.read(1 << 16):
                    for came in read.feed(data):
                        if came.kind in (RST_STREAM, GOAWAY):
                            return False
                        if came.kind == HEADERS:
                            return b"\x03202" in came.payload
                return False
        except ConnectionError:
            return False
        finally:
            writer.transport.abort()


NOTE = b'{"jsonrpc":"2.0","method":"_example/note","params":{"text":"allowed"}}'
EVIL = b'{"jsonrpc":"2.0","method":"_example/note","params":{"text":"attacks"}}'


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def block(fields):
    """A header block of literals, so that each byte of a name or a value is a byte of the block."""
    return b"".join(b"\x10" + b"".join(_string(text.encode()) for text in field) for field in fields)


def _string(text):
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, length = len(text) - 127, b"\x7f"
    while rest >= 128:
        length += bytes([rest % 128 + 128])
        rest //= 128
    return length + bytes([rest]) + text


def h2_frames(attacker, body, parts=None):
    """A signed POST over HTTP/2; `parts` are those of the body, a frame each."""
    head = [(":method", "POST"), (":path", PATH), *attacker.post(body), (":scheme", "http"), (":authority", "x")]
    fields = [*head[:2], *head[-2:], *head[2:-2]]
    parts = [body] if parts is None else parts
    datas = [frame(DATA, END_STREAM if part is parts[-1] else 0, 1, part) for part in parts]
    return frame(HEADERS, END_HEADERS, 1, block(fields)) + b"".join(datas)


@pytest.fixture
async def attacked(tmp_path):
    agent = Recording()
    hosts = accord.Hosts(tmp_path / "hosts.sqlite3", key=KEY)
    async with serving(agent, hosts=hosts, access=accord.http.Access({"s3cret": "ada"})) as server:
        attacker = Attacker(server, agent)
        await attacker.open()
        yield attacker


def status(answered):
    return int(answered[9:12] or 0)


async def test_every_changed_byte_of_a_request_over_http1_is_refused(attacked):
    length = len(attacked.written("POST", attacked.post(NOTE), NOTE))
    for place in range(length):
        request = bytearray(attacked.written("POST", attacked.post(NOTE), NOTE))
        if place in unsigned_http1(request):
            continue
        request[place] ^= 1
        answered = await attacked.http1(bytes(request))
        assert (status(answered) // 100 == 2, attacked.agent.got) == (False, []), bytes(request)
    assert status(await attacked.http1(attacked.written("POST", attacked.post(NOTE), NOTE))) == 202
    assert attacked.agent.got == [NOTE]
    assert attacked.agent.opened == 1


def unsigned_http1(request):
    """What the receiving host does not use: the version of the protocol, and the name of the server."""
    return {request.index(b"HTTP/1.1") + 7, *(request.index(b"host: x") + place for place in (5, 6))}


async def test_every_changed_byte_of_a_request_over_http2_is_refused(attacked):
    pytest.importorskip("hpack")
    whole = h2_frames(attacked, NOTE)
    data = len(whole) - len(NOTE)
    framing = {*range(9), *range(data - 9, data)}
    for place in range(len(whole)):
        request = bytearray(h2_frames(attacked, NOTE))
        if place in unsigned_http2(request):
            continue
        request[place] ^= 1
        accepted = await attacked.http2(bytes(request), ends=place not in framing)
        assert (accepted, attacked.agent.got) == (False, []), bytes(request)
    assert await attacked.http2(h2_frames(attacked, NOTE))
    assert attacked.agent.got == [NOTE]
    assert attacked.agent.opened == 1


def unsigned_http2(request):
    scheme, authority = request.index(b"\x04http") + 1, request.index(b":authority\x01x") + 11
    return {*range(scheme, scheme + 4), authority}


@pytest.mark.parametrize("arrives", ["with its head", "after its head", "in chunks", "in frames"])
async def test_another_body_is_refused_however_it_arrives(attacked, arrives):
    for body, accepted in ((EVIL, False), (NOTE[::-1], False), (NOTE, True)):
        if arrives == "in frames":
            pytest.importorskip("hpack")
            signed = h2_frames(attacked, NOTE, [b"", NOTE[:9], NOTE[9:]])
            first = signed.index(frame(DATA, 0, 1, b""))
            parts = [frame(DATA, 0, 1, body[:9]), frame(DATA, END_STREAM, 1, body[9:])]
            assert await attacked.http2(signed[:first] + b"".join(parts)) == accepted
        else:
            head = attacked.written("POST", attacked.post(NOTE), NOTE).removesuffix(NOTE)
            if arrives == "in chunks":
                head = head.replace(b"content-length: %d" % len(NOTE), b"transfer-encoding: chunked")
                chunks = b"9\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (body[:9], len(body) - 9, body[9:])
                answered = await attacked.http1(head + chunks)
            elif arrives == "after its head":
                answered = await attacked.http1(head, body[:9], body[9:])
            else:
                answered = await attacked.http1(head + body)
            assert status(answered) == (202 if accepted else 403)
            assert accepted or b"not the one that was signed" in answered
        assert attacked.agent.got == [NOTE] * accepted


async def test_chunks_in_another_order_are_refused(attacked):
    head = attacked.written("POST", attacked.post(NOTE), NOTE).removesuffix(NOTE)
    head = head.replace(b"content-length: %d" % len(NOTE), b"transfer-encoding: chunked")
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (NOTE[:20], NOTE[20:40], NOTE[40:])]
    answered = await attacked.http1(head + chunks[0] + chunks[2] + chunks[1] + b"0\r\n\r\n")
    assert (status(answered), attacked.agent.got) == (403, [])


async def test_a_request_is_taken_once(attacked):
    request = attacked.written("POST", attacked.post(NOTE), NOTE)
    assert status(await attacked.http1(request)) == 202
    answered = await attacked.http1(request)
    assert (status(answered), b"taken before" in answered) == (403, True)
    assert attacked.agent.got == [NOTE]


async def test_a_header_that_was_not_signed_is_not_used(attacked):
    signed = [*JSON, ("accord-hop", attacked.signed("POST", dict(JSON), NOTE))]
    answered = await attacked.http1(
        attacked.written("POST", [*signed, ("acp-connection-id", attacked.connection)], NOTE)
    )
    assert (status(answered), attacked.agent.got) == (403, [])
    request = attacked.written("POST", [*attacked.post(NOTE), ("origin", "https://evil.example")], NOTE)
    answered = await attacked.http1(request)
    assert (status(answered), b"evil.example" in answered) == (202, False)


async def test_a_signature_of_a_get_opens_no_websocket(attacked):
    headers = {"accept": "text/event-stream", "acp-connection-id": attacked.connection}
    upgrade = [("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")]
    key = [("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")]
    signed = [*headers.items(), ("accord-hop", attacked.signed("GET", headers))]
    request = attacked.written("GET", [*signed, *upgrade, *key])
    assert status(await attacked.http1(request, filler=b"")) == 403
    assert attacked.agent.opened == 1


async def test_the_peer_port_tells_nothing_to_programs_without_the_key(attacked):
    health = await attacked.http1(attacked.written("GET", [], target=HEALTH))
    assert (status(health), attacked.receiver.encode() in health) == (200, False)
    assert status(await attacked.http1(attacked.written("GET", [], target=METRICS))) == 403
    with_key = [("accord-hop", attacked.signed("GET", {}, target=METRICS))]
    request = attacked.written("GET", with_key, target=METRICS)
    assert [status(await attacked.http1(request)) for _ in range(2)] == [200, 403]


@asynccontextmanager
async def two_hosts(tmp_path):
    def hosts(**more):
        return accord.Hosts(tmp_path / "hosts.sqlite3", key=KEY, **more)

    async with serving(an_agent(), hosts=hosts()) as agents, serving(an_agent(), hosts=hosts(weight=0)) as front:
        await eventually(front.app.cluster.peers.ready)
        yield agents, front


async def test_a_step_of_the_wall_clock_ends_no_forwarded_connection(tmp_path, monkeypatch):
    clock, wall = {"step": 0.0}, time.time
    monkeypatch.setattr(time, "time", lambda: wall() + clock["step"])
    async with two_hosts(tmp_path) as (agents, front):
        for way in ("http1", "websocket"):
            async with editor_on(front.url, way) as editor:
                assert agents.app.connections == 1
                session = await editor.open_session()
                for clock["step"] in (0.0, 3600.0, -86_400.0):
                    await editor.prompt(session, "hello")
            await eventually(lambda: not agents.app.connections)


async def test_a_host_whose_key_is_another_gets_no_requests_and_the_log_says_why(tmp_path, caplog):
    directory = tmp_path / "hosts.sqlite3"
    async with (
        serving(an_agent(), hosts=accord.Hosts(directory, key=OTHER, lease=0.5)),
        serving(an_agent(), hosts=accord.Hosts(directory, key=KEY, weight=0, lease=0.5)),
    ):
        await eventually(lambda: "another key" in caplog.text)
