"""What decides is pure: events, order, streams, who may come in."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from accord.http import judging
from accord.http.access import Access, is_loopback, names_of
from accord.http.events import EventReader, TooLong, announcement, event
from accord.http.judging import Refusal
from accord.http.ordering import MOST_MISSING, InOrder, Once
from accord.http.outbound import Gone, Outbound
from accord.http.wire import session_of
from accord.jsonrpc.messages import parse

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


def frames(outbound, stream):
    return [message.frame for message in outbound.take(stream, 10**6)]


@unhurried
@given(st.lists(st.binary(max_size=20).map(lambda it: b'{"a":"%b"}' % it.hex().encode()), max_size=8), st.data())
def test_events_come_back_whatever_the_pieces_they_are_cut_into(messages, data):
    stream = b":\n\n".join(event(number, message) for number, message in enumerate(messages, 1))
    reader, found = EventReader(LIMIT), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert [(it.id, it.data) for it in found] == [(str(n), message) for n, message in enumerate(messages, 1)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_of_a_stream_may_end_in_any_way(end):
    text = end.join([b"\xef\xbb\xbfevent: message", b"id:3", b'data:{"a":', b"data: 1}", b": aside", b"", b""])
    reader = EventReader(LIMIT)
    found = [it for byte in text for it in reader.feed(bytes([byte]))]
    assert [(it.id, it.data) for it in found] == [("3", b'{"a":\n1}')]


def test_a_message_with_line_breaks_is_still_one_event():
    (found,) = EventReader(LIMIT).feed(event(1, b'{"a":\r\n1}'))
    assert found.data.replace(b" ", b"") == b'{"a":1}'


def test_an_event_past_the_limit_is_refused_before_it_ends():
    with pytest.raises(TooLong):
        EventReader(LIMIT).feed(b"data: " + b"x" * (LIMIT + 100))


def test_a_session_is_announced_in_a_comment_whatever_its_name_is():
    (found,) = EventReader(LIMIT).feed(announcement("a b\nc/é"))
    assert found.session == "a b\nc/é"


@unhurried
@given(st.permutations(range(1, 9)), st.lists(st.integers(1, 8)))
def test_messages_are_put_in_order_and_those_that_come_twice_are_dropped(arrivals, again):
    order, delivered = InOrder(), []
    for number in [*arrivals, *again]:
        delivered += order.arrived(number, b"%d" % number)
    assert delivered == [b"%d" % number for number in range(1, 9)]
    assert not order.is_waiting
    assert order.held_bytes == 0


@unhurried
@given(st.lists(st.integers(1, 40)))
def test_a_number_is_taken_once_in_whatever_order_they_come(arrivals):
    once, taken = Once(), []
    for number in arrivals:
        assert once.has(number) == (number in taken)
        if once.take(number):
            taken.append(number)
    assert sorted(taken) == sorted(set(arrivals))


def test_numbers_that_never_come_are_not_remembered_for_ever():
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
    outbound = Outbound()
    for frame in (one := update("one")), (two := update("two")), (none := b'{"jsonrpc":"2.0","method":"_x/y"}'):
        outbound.put(frame)
    assert frames(outbound, outbound.session("one")) == [one]
    assert frames(outbound, outbound.session("two")) == [two]
    assert frames(outbound, outbound.connection) == [none]


@pytest.mark.requirement("http.stream.carries-answers")
def test_an_answer_goes_where_its_request_belongs():
    outbound = Outbound()
    outbound.asked(call(1, "session/prompt", "one"), "one")
    outbound.asked(call(2, "session/load", "two"), "two")
    outbound.asked(call(3, "session/new"), None)
    for frame in answer(1), answer(2), answer(3, b'{"sessionId":"three"}'):
        outbound.put(frame)
    assert frames(outbound, outbound.session("one")) == [answer(1)]
    assert frames(outbound, outbound.connection) == [answer(2), answer(3, b'{"sessionId":"three"}')]
    assert set(outbound.sessions) == {"one", "two", "three"}


def test_messages_are_numbered_across_the_streams():
    outbound = Outbound()
    for session in "one", "two", "one":
        outbound.put(update(session))
    assert [message.number for message in outbound.take(outbound.session("one"), 10**6)] == [1, 3]
    assert [message.number for message in outbound.take(outbound.session("two"), 10**6)] == [2]


@unhurried
@given(st.lists(st.sampled_from(["one", "two"]), min_size=1, max_size=30), st.data())
def test_a_reader_that_comes_back_gets_exactly_what_it_missed(sessions, data):
    outbound = Outbound()
    for number, session in enumerate(sessions, 1):
        outbound.put(update(session, str(number)))
    stream = outbound.session("one")
    taken = outbound.take(stream, data.draw(st.integers(1, 3000)))
    got = taken[: data.draw(st.integers(0, len(taken)))]
    outbound.resume(stream, got[-1].number if got else 0)
    again = []
    while more := outbound.take(stream, 100):
        again += more
    assert [it.number for it in [*got, *again]] == [n for n, session in enumerate(sessions, 1) if session == "one"]
    assert outbound.waiting_bytes == sum(len(update("two", str(n))) for n, it in enumerate(sessions, 1) if it == "two")


def test_a_reader_that_comes_back_too_late_is_told_so():
    outbound = Outbound(keep=200)
    for number in range(10):
        outbound.put(update("one", str(number)))
    stream = outbound.session("one")
    last = outbound.take(stream, 10**6)[-1].number
    with pytest.raises(Gone):
        outbound.resume(stream, 1)
    outbound.resume(stream, last)
    with pytest.raises(Gone):
        outbound.resume(stream, last + 1)


def test_what_is_kept_has_a_bound():
    outbound = Outbound(keep=10_000)
    stream = outbound.session("one")
    for _ in range(100):
        outbound.put(update("one", "x" * 1000))
        outbound.take(stream, 10**6)
    assert outbound._kept_bytes <= 10_000
    assert len(outbound._kept) < 10


def test_the_session_of_a_message_is_read_whatever_else_it_holds():
    assert session_of(b'{"a":[{"sessionId":"no"}],"sessionId":"yes"}') == "yes"
    assert session_of(b'{"sessionId":7}') is None
    assert session_of(None) is None


def refused(do, *arguments):
    with pytest.raises(Refusal) as caught:
        do(*arguments)
    return caught.value.status


@pytest.mark.requirement("http.session-missing")
def test_a_message_and_its_header_name_the_same_session():
    outbound = Outbound()
    message = call(1, "session/prompt", "one")
    assert judging.posted(message, {"acp-session-id": "one"}, outbound).session == "one"
    assert refused(judging.posted, message, {}, outbound) == 400
    assert refused(judging.posted, message, {"acp-session-id": "two"}, outbound) == 400


def test_the_answer_to_a_sessions_request_names_that_session():
    outbound = Outbound()
    outbound.put(b'{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"sessionId":"one","path":"/x"}}')
    message = parse(answer(9))
    assert refused(judging.posted, message, {"acp-session-id": "two"}, outbound) == 400
    assert judging.posted(message, {"acp-session-id": "one"}, outbound).session == "one"
    assert judging.posted(message, {}, outbound).session == "one"  # its id says enough


@pytest.mark.parametrize("given", ["", "application/jsonx", "text/plain", "text/json"])
def test_only_json_is_taken(given):
    assert refused(judging.media_type, {"content-type": given}) == 415


def test_a_charset_does_no_harm():
    judging.media_type({"content-type": "Application/JSON; charset=utf-8"})


@pytest.mark.parametrize("given", ["-1", "x", "1.5", "٣", "9" * 30])
def test_a_last_event_that_is_no_number_is_refused(given):
    assert refused(judging.last_event, {"last-event-id": given}) == 400


def test_tokens_let_in_their_owners_only():
    access = Access({"s3cret": "ada", "other": "bob"})
    assert access.owner({"authorization": "Bearer other"}) == "bob"
    assert access.owner({"authorization": "bearer s3cret"}) == "ada"
    for wrong in {}, {"authorization": "Bearer nope"}, {"authorization": "Basic s3cret"}, {"authorization": "s3cret"}:
        assert refused(access.owner, wrong) == 401
    assert b"s3cret" not in b"".join(access._owners)


def test_pages_of_browsers_stay_out_unless_they_are_named():
    assert refused(Access().owner, {"origin": "https://evil.example"}) == 403
    assert Access(origins=["https://good.example"]).owner({"origin": "https://good.example"}) == ""
    assert refused(Access(origins=["https://good.example"]).owner, {"origin": "null"}) == 403


@pytest.mark.parametrize("host", ["localhost:80", "[::1]:80", "127.0.0.1", "LOCALHOST"])
def test_a_server_answers_to_its_names(host):
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
def test_a_server_answers_to_no_other_name_and_to_no_malformed_one(host):
    access = Access(hosts=["localhost", "127.0.0.1", "::1", ""])
    assert refused(access.owner, {"host": host}) == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "0:0:0:0:0:0:0:1"])
def test_a_server_on_this_machine_answers_to_its_own_address(host):
    names = names_of(host)
    assert names is not None
    assert host in names
    assert {"localhost", "127.0.0.1", "::1"} <= names


@pytest.mark.parametrize("host", ["127.evil.example", "0.0.0.0", "::", "192.0.2.1", "localhost.evil.example"])
def test_what_only_looks_like_this_machine_is_not(host):
    assert not is_loopback(host)
    assert names_of(host) is None


def test_a_page_of_the_servers_own_origin_may_come_in():
    access = Access(hosts=["localhost"])
    assert access.owner({"host": "localhost:8000", "origin": "http://localhost:8000"}) == ""
    assert refused(access.owner, {"host": "localhost:8000", "origin": "http://localhost:8001"}) == 403
    # Proxies put a plain name there for all that comes to them.
    assert refused(access.owner, {"host": "localhost", "origin": "http://localhost"}) == 403
    # Where any name is answered to, a foreign page could point its own here.
    assert refused(Access().owner, {"host": "evil.example:80", "origin": "http://evil.example:80"}) == 403


@pytest.mark.parametrize("tokens", [[""], [" "], {"\t": "ada"}, [], {}])
def test_an_empty_token_or_an_empty_set_of_tokens_is_a_mistake(tokens):
    with pytest.raises(ValueError, match="'tokens'"):
        Access(tokens)
