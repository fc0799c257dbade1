"""The pure modules: events, numbering, calls, streams, validation and access."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord.engine.incoming_requests import session_of
from accord.http.client.post_queue import ClientRequests, PostRoute, SessionNews
from accord.http.message_numbers import MOST_MISSING, InOrder, Once
from accord.http.server import validation
from accord.http.server.access import Access, is_loopback
from accord.http.server.http_connection import with_connection_id
from accord.http.server.streams import NotReplayable, Streams
from accord.http.server.unanswered_requests import StreamRoute, UnansweredRequests
from accord.http.server.validation import AnswersBadly, Ends, Opens, Posts, Reads, Refusal, session_of_posted
from accord.http.sse import EventReader, TooLong, announcement, event
from accord.jsonrpc.wire_messages import parse

LIMIT = 1000

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For machines that are shared."""


def update(session, text="x"):
    return b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%b","t":"%b"}}' % (
        session.encode(),
        text.encode(),
    )


def call(number, method, session=None):
    params = b'{"sessionId":"%b"}' % session.encode() if session else b"{}"
    return parse(b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (number, method.encode(), params))


def answer(number, result=b"{}"):
    return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (number, result)


def frames(streams, stream):
    return [message.frame for message in streams.take(stream, 10**6)]


def put(streams, *sent, calls=None):
    """What the agent sends, as a connection puts it into its streams."""
    calls = calls or UnansweredRequests()
    for frame in sent:
        streams.put(frame, calls.sent(parse(frame)))


@unhurried
@given(st.lists(st.binary(max_size=20).map(lambda it: b'{"a":"%b"}' % it.hex().encode()), max_size=8), st.data())
def test_events_are_decoded_wherever_the_stream_is_cut(messages, data):
    stream = b":\n\n".join(event(number, message) for number, message in enumerate(messages, 1))
    reader, found = EventReader(LIMIT), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert [(it.id, it.data) for it in found] == [(str(n), message) for n, message in enumerate(messages, 1)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_of_an_event_stream_may_end_in_lf_crlf_or_cr(end):
    text = end.join([b"\xef\xbb\xbfevent: message", b"id:3", b'data:{"a":', b"data: 1}", b": aside", b"", b""])
    reader = EventReader(LIMIT)
    found = [it for byte in text for it in reader.feed(bytes([byte]))]
    assert [(it.id, it.data) for it in found] == [("3", b'{"a":\n1}')]


def test_a_message_with_line_breaks_is_one_event():
    (found,) = EventReader(LIMIT).feed(event(1, b'{"a":\r\n1}'))
    assert found.data.replace(b" ", b"") == b'{"a":1}'


@pytest.mark.parametrize("cut", [1, 7, 1 << 20])
@pytest.mark.parametrize("lines", [1, 3])
def test_an_event_over_the_limit_is_skipped_and_keeps_its_id_and_kind(cut, lines):
    text = ' "x",' * (LIMIT // 5)
    data = f'{{"jsonrpc": "2.0",\n"params": [{text} 0],\n"id": 7, "method": "m"}}'
    data = data if lines == 3 else data.replace("\n", " ")
    stream = b"id: 1\n" + b"".join(b"data: %b\n" % line.encode() for line in data.split("\n")) + b"\n" + event(2, b"{}")
    reader, found = EventReader(LIMIT), []
    for start in range(0, len(stream), cut):
        found += reader.feed(stream[start : start + cut])
        assert len(reader._rest) <= LIMIT + 100
    oversized = found[0].data
    assert (oversized.id, oversized.has_method, oversized.length > LIMIT) == (7, True, True)
    assert [it.id for it in found] == ["1", "2"]
    assert found[1].data == b"{}"


@pytest.mark.parametrize("line", [b":", b"id: ", b""])
def test_a_line_over_the_limit_that_is_no_data_is_refused_before_it_ends(line):
    with pytest.raises(TooLong):
        EventReader(LIMIT).feed(line + b"x" * (LIMIT + 100))


def test_any_session_name_can_be_announced_in_a_comment():
    (found,) = EventReader(LIMIT).feed(announcement("a b\nc/é"))
    assert found.session == "a b\nc/é"


@unhurried
@given(st.permutations(range(1, 9)), st.lists(st.integers(1, 8)))
def test_messages_are_ordered_and_duplicates_are_dropped(arrivals, again):
    order, delivered = InOrder(), []
    for number in [*arrivals, *again]:
        delivered += order.arrived(number, b"%d" % number)
    assert delivered == [b"%d" % number for number in range(1, 9)]
    assert not order.is_waiting
    assert order.held_bytes == 0


@unhurried
@given(st.lists(st.integers(1, 40)))
def test_each_number_is_taken_once_in_any_order(arrivals):
    once, taken = Once(), []
    for number in arrivals:
        assert once.has(number) == (number in taken)
        if once.take(number):
            taken.append(number)
    assert sorted(taken) == sorted(set(arrivals))


def test_the_memory_of_missing_numbers_is_bounded():
    once = Once()
    assert once.take(10**15)
    assert once.take(10**15 - MOST_MISSING)
    assert not once.take(10**15 - MOST_MISSING - 1)
    for number in range(10**15 + 2, 10**15 + 4 * MOST_MISSING, 2):
        assert once.take(number)
    assert once.take(10**15 + 4 * MOST_MISSING - 1)
    assert not once.take(10**15 - MOST_MISSING + 1)


@pytest.mark.requirement("http.stream.session-messages", "http.stream.connection-messages", "http.many-sessions")
def test_a_message_goes_over_the_stream_of_its_session():
    streams = Streams()
    one, two, none = update("one"), update("two"), b'{"jsonrpc":"2.0","method":"_x/y"}'
    put(streams, one, two, none)
    assert frames(streams, streams.session("one")) == [one]
    assert frames(streams, streams.session("two")) == [two]
    assert frames(streams, streams.connection) == [none]


@pytest.mark.requirement("http.stream.carries-answers")
def test_an_answer_goes_over_the_stream_of_its_request():
    streams, calls = Streams(), UnansweredRequests()
    calls.received(call(1, "session/prompt", "one"), "one")
    calls.received(call(2, "session/load", "two"), "two")
    calls.received(call(3, "session/new"), None)
    put(streams, answer(1), answer(2), answer(3, b'{"sessionId":"three"}'), calls=calls)
    assert frames(streams, streams.session("one")) == [answer(1)]
    assert frames(streams, streams.connection) == [answer(2), answer(3, b'{"sessionId":"three"}')]
    assert set(streams.sessions) == {"one", "three"}


def test_a_fork_opens_the_session_that_it_makes_and_not_the_one_that_it_copies():
    calls = UnansweredRequests(sessions=2)
    calls.received(call(1, "session/fork", "source"), "source")
    assert calls.sent(parse(answer(1, b'{"sessionId":"copy"}'))) == StreamRoute("source", "copy", closes=False)
    calls.received(call(2, "session/load", "copy"), "copy")
    assert calls.sessions == 1
    calls.received(call(3, "session/load", "source"), "source")
    assert calls.sessions == 2


def test_a_request_that_is_sent_again_under_its_id_counts_once():
    calls, idle = UnansweredRequests(sessions=5), []
    calls.on_idle = lambda: idle.append(calls.is_busy)
    for _ in range(2):
        calls.received(call(1, "session/new"), None)
        calls.received(call(2, "session/prompt", "one"), "one")
    assert (calls.sessions, calls.unanswered, calls.is_busy) == (1, 2, True)
    calls.sent(parse(answer(2)))
    assert (calls.sessions, calls.unanswered, idle) == (1, 1, [False])


def test_a_cancel_waits_in_the_queue_of_the_request_that_it_cancels():
    calls = ClientRequests()
    assert calls.sent(call(1, "session/prompt", "one")) == PostRoute("one", "one")
    cancel = parse(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}')
    assert calls.sent(cancel) == PostRoute(None, "one")
    calls.received(parse(answer(1)), "one")
    assert calls.sent(cancel) == PostRoute(None, None)


def test_a_client_learns_from_answers_which_sessions_are_open():
    calls = ClientRequests()
    calls.sent(call(1, "session/new"))
    assert calls.received(parse(answer(1, b'{"sessionId":"one"}')), None) == SessionNews(named="one")
    for number, error in ((2, True), (3, False)):
        calls.sent(call(number, "session/close", "one"))
        frame = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-1,"message":""}}' % number if error else answer(number)
        assert calls.received(parse(frame), "one") == (SessionNews() if error else SessionNews(closed="one"))


def test_messages_are_numbered_across_the_streams():
    streams = Streams()
    put(streams, update("one"), update("two"), update("one"))
    assert [message.number for message in streams.take(streams.session("one"), 10**6)] == [1, 3]
    assert [message.number for message in streams.take(streams.session("two"), 10**6)] == [2]


@unhurried
@given(st.lists(st.sampled_from(["one", "two"]), min_size=1, max_size=30), st.data())
def test_a_resumed_stream_repeats_exactly_what_was_missed(sessions, data):
    streams = Streams()
    put(streams, *(update(session, str(number)) for number, session in enumerate(sessions, 1)))
    stream = streams.session("one")
    taken = streams.take(stream, data.draw(st.integers(1, 3000)))
    got = taken[: data.draw(st.integers(0, len(taken)))]
    streams.resume(stream, got[-1].number if got else 0)
    again = []
    while more := streams.take(stream, 100):
        again += more
    assert [it.number for it in [*got, *again]] == [n for n, session in enumerate(sessions, 1) if session == "one"]
    assert streams.waiting_bytes == sum(len(update("two", str(n))) for n, it in enumerate(sessions, 1) if it == "two")


def test_a_stream_that_is_resumed_too_late_raises_an_error():
    streams = Streams(keep=200)
    put(streams, *(update("one", str(number)) for number in range(10)))
    stream = streams.session("one")
    last = streams.take(stream, 10**6)[-1].number
    with pytest.raises(NotReplayable):
        streams.resume(stream, 1)
    streams.resume(stream, last)
    with pytest.raises(NotReplayable):
        streams.resume(stream, last + 1)


def test_the_bytes_of_kept_messages_are_bounded():
    streams = Streams(keep=10_000)
    stream = streams.session("one")
    for _ in range(100):
        put(streams, update("one", "x" * 1000))
        streams.take(stream, 10**6)
    assert streams._replayable_bytes <= 10_000
    assert len(streams._replayable) < 10


def test_the_session_of_a_message_is_read_from_its_top_level_only():
    assert session_of(b'{"a":[{"sessionId":"no"}],"sessionId":"yes"}') == "yes"
    assert session_of(b'{"sessionId":7}') is None
    assert session_of(None) is None


def refused(do, *arguments):
    with pytest.raises(Refusal) as caught:
        do(*arguments)
    return caught.value.status


def posts(body, session=None):
    return Posts("connection", parse(body), body, session)


@pytest.mark.requirement("http.session-missing")
def test_a_message_and_its_header_name_the_same_session():
    calls = UnansweredRequests()
    body = b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"one"}}'
    assert session_of_posted(posts(body, "one"), calls) == "one"
    assert refused(session_of_posted, posts(body), calls) == 400
    assert refused(session_of_posted, posts(body, "two"), calls) == 400


def test_the_answer_to_a_sessions_request_names_that_session():
    calls = UnansweredRequests()
    asked = b'{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"sessionId":"one","path":"/x"}}'
    assert calls.sent(parse(asked)) == StreamRoute("one")
    assert refused(session_of_posted, posts(answer(9), "two"), calls) == 400
    assert session_of_posted(posts(answer(9), "one"), calls) == "one"
    assert session_of_posted(posts(answer(9)), calls) == "one"  # its id says enough


INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
JSON = {"content-type": "application/json"}
EVENTS = {"accept": "text/event-stream", "acp-connection-id": "c"}


async def read(method, headers, body=INITIALIZE):
    async def whole():
        return body

    return await validation.read(method, headers, whole)


async def refused_read(*arguments):
    with pytest.raises(Refusal) as caught:
        await read(*arguments)
    return caught.value.status


async def test_a_request_is_read_as_one_value_that_says_what_it_is():
    here = {**JSON, "acp-connection-id": "c"}
    assert await read("POST", JSON) == Opens(parse(INITIALIZE), INITIALIZE)
    headers = {**here, "acp-session-id": "s", "accord-message": "7"}
    assert await read("POST", headers, answer(1)) == Posts("c", parse(answer(1)), answer(1), "s", 7)
    bad = b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}'
    assert isinstance(await read("POST", here, bad), AnswersBadly)
    assert await read("GET", {**EVENTS, "last-event-id": "3"}) == Reads("c", None, 3)
    assert await read("DELETE", {"acp-connection-id": "c"}) == Ends("c")


@pytest.mark.parametrize("given", ["", "application/jsonx", "text/plain", "text/json"])
async def test_a_media_type_other_than_json_is_refused(given):
    assert await refused_read("POST", {"content-type": given}) == 415


async def test_a_charset_in_the_media_type_is_accepted():
    assert isinstance(await read("POST", {"content-type": "Application/JSON; charset=utf-8"}), Opens)


@pytest.mark.parametrize("given", ["-1", "x", "1.5", "٣", "9" * 30])
async def test_a_last_event_that_is_not_a_number_is_refused(given):
    assert await refused_read("GET", {**EVENTS, "last-event-id": given}) == 400


def test_a_token_gives_access_to_its_owner_only():
    access = Access({"s3cret": "ada", "other": "bob"})
    assert access.owner({"authorization": "Bearer other"}) == "bob"
    assert access.owner({"authorization": "bearer s3cret"}) == "ada"
    for wrong in {}, {"authorization": "Bearer nope"}, {"authorization": "Basic s3cret"}, {"authorization": "s3cret"}:
        assert refused(access.owner, wrong) == 401
    assert b"s3cret" not in b"".join(access._owners)


def test_pages_of_unlisted_origins_are_refused():
    assert refused(Access().owner, {"origin": "https://evil.example"}) == 403
    assert Access(origins=["https://good.example"]).owner({"origin": "https://good.example"}) == ""
    assert refused(Access(origins=["https://good.example"]).owner, {"origin": "null"}) == 403


@pytest.mark.parametrize("host", ["localhost:80", "[::1]:80", "127.0.0.1", "LOCALHOST"])
def test_a_host_header_with_an_allowed_name_is_accepted(host):
    assert Access(hosts=["localhost", "127.0.0.1", "::1"]).owner({"host": host}) == ""


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:80",
        "[localhost]evil",
        "[localhost]",
        "[::1]evil",
        "[::1",
        "::1",
        "localhost:80:80",
        "localhost:evil",
        "localhost,evil.example",
        "localhost evil.example",
        "evil.example@localhost",
        "localhost/evil.example",
        "",
    ],
)
def test_a_host_header_with_another_or_a_malformed_name_is_refused(host):
    access = Access(hosts=["localhost", "127.0.0.1", "::1", ""])
    assert refused(access.owner, {"host": host}) == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "0:0:0:0:0:0:0:1"])
def test_a_loopback_server_accepts_its_own_address(host):
    names = Access.loopback_names(host)
    assert names is not None
    assert host in names
    assert {"localhost", "127.0.0.1", "::1"} <= names


@pytest.mark.parametrize("host", ["127.evil.example", "0.0.0.0", "::", "192.0.2.1", "localhost.evil.example"])
def test_names_that_resemble_the_loopback_are_not_loopback(host):
    assert not is_loopback(host)
    assert Access.loopback_names(host) is None


def test_a_page_of_the_servers_own_origin_is_allowed():
    access = Access(hosts=["localhost"])
    assert access.owner({"host": "localhost:8000", "origin": "http://localhost:8000"}) == ""
    assert refused(access.owner, {"host": "localhost:8000", "origin": "http://localhost:8001"}) == 403
    # Proxies put a plain name there for all that comes to them.
    assert refused(access.owner, {"host": "localhost", "origin": "http://localhost"}) == 403
    # Where any name is answered to, a foreign page could point its own here.
    assert refused(Access().owner, {"host": "evil.example:80", "origin": "http://evil.example:80"}) == 403


@pytest.mark.parametrize("tokens", [[""], [" "], {"\t": "ada"}, [], {}])
def test_empty_tokens_raise_an_error(tokens):
    with pytest.raises(ValueError, match="'tokens'"):
        Access(tokens)


@pytest.mark.parametrize(
    ("result", "sent"),
    [
        (b"{}", b'{"connectionId":"c"}'),
        (b' { "a" : 1 } ', b'{ "a" : 1,"connectionId":"c"}'),
        (b'{"n":1e400,"big":1234567890123456789012345678901234567890}', None),
        (b'{"connectionId":"the agent\'s own"}', None),
        (b'{"half":"\\ud83d"}', b'{"half":"\\ud83d","connectionId":"c"}'),
        (b"[1]", None),
        (b"null", None),
    ],
)
def test_the_answer_to_initialize_holds_the_id_of_its_connection(result, sent):
    frame = b'{"jsonrpc":"2.0","id":1,"result":%b}' % result
    expected = frame if sent is None else b'{"jsonrpc":"2.0","id":1,"result":%b}' % sent
    assert with_connection_id(parse(frame), frame, "c") == expected
