"""JSON text into messages and back: good ones, odd ones, wrong ones, and any bytes at all."""

from __future__ import annotations

import json
import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from msgspec import Raw

from accord.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from accord.jsonrpc import wire_messages
from accord.jsonrpc.wire_messages import (
    ErrorObject,
    Malformed,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
    parse,
)

unhurried = settings(deadline=None)


def frame(**members: Any) -> bytes:
    """A frame with these members, and with the version unless it is among them."""
    return json.dumps({"jsonrpc": "2.0"} | members, separators=(",", ":")).encode()


def failed(code: int = -32000, message: str = "no", data: Any = None) -> ErrorObject:
    return ErrorObject(code, message, data)


# Good messages

GOOD = [
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}', RequestFrame(1, "m", Raw(b'{"a":1}'))),
    (b'{"jsonrpc":"2.0","id":"1","method":"m"}', RequestFrame("1", "m")),
    (b'{"jsonrpc":"2.0","id":0,"method":"m","params":{}}', RequestFrame(0, "m", Raw(b"{}"))),
    (b'{"jsonrpc":"2.0","id":-1,"method":""}', RequestFrame(-1, "")),
    (b'{"jsonrpc":"2.0","method":"m","params":{"a":1}}', NotificationFrame("m", Raw(b'{"a":1}'))),
    (b'{"jsonrpc":"2.0","method":"m"}', NotificationFrame("m")),
    (b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}', ResponseFrame(1, Raw(b'{"a":1}'))),
    (b'{"jsonrpc":"2.0","id":1,"result":null}', ResponseFrame(1, Raw(b"null"))),
    (b'{"jsonrpc":"2.0","id":1,"result":[1]}', ResponseFrame(1, Raw(b"[1]"))),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}', ResponseFrame(1, error=failed())),
    (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":{"a":[1]}}}',
        ResponseFrame(1, error=failed(data={"a": [1]})),
    ),
    (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}', ResponseFrame(None, error=failed())),
]


@pytest.mark.parametrize(("text", "message"), GOOD)
def test_calls_tells_and_answers_are_told_apart(text, message):
    assert parse(text) == message


@pytest.mark.parametrize(("text", "message"), GOOD)
def test_spaces_and_the_order_of_members_do_not_matter(text, message):
    members = json.loads(text)
    reverse = dict(reversed(members.items()))
    for order in (members, reverse):
        spaced = b" " + json.dumps(order, indent=1).encode() + b"\r\n\t "
        parsed = parse(spaced)
        assert type(parsed) is type(message)
        assert parsed == parse(spaced.strip())


def test_params_come_first_or_last_without_being_mistaken():
    for text in (
        b'{"jsonrpc":"2.0","method":"m","params":{"a":{}},"id":1}',
        b'{"jsonrpc":"2.0","method":"m","id":1,"params":{"a":{}}}',
        b'{"params":{"a":{}},"id":1,"method":"m","jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"params":{"a":{}},"method":"m"} ',
    ):
        assert parse(text) == RequestFrame(1, "m", Raw(b'{"a":{}}'))


def test_params_and_results_are_the_text_of_the_frame():
    text = b'{ "a" : 1.10, "b":[1e2 , "\\u0041"] }'
    assert parse(b'{"jsonrpc":"2.0","method":"m","params":%b}' % text) == NotificationFrame("m", Raw(text))
    assert parse(b'{"jsonrpc":"2.0","id":1,"result":%b}' % text) == ResponseFrame(1, Raw(text))


@pytest.mark.parametrize(
    "form", [b'"method":"m","params":%b', b'"id":1,"method":"m","params":%b', b'"id":1,"result":%b']
)
def test_params_and_results_are_not_copied(form):
    text = b'{"jsonrpc":"2.0",%b}' % (form % (b'{"text":"%b"}' % (b"x" * 1_000_000)))
    tracemalloc.start()
    try:
        message = parse(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not isinstance(message, Malformed)
    assert peak < len(text) / 10


def test_ids_keep_their_type():
    for id_, other in ((3, "3"), ("3", 3)):
        parsed = parse(frame(id=id_, method="m"))
        assert isinstance(parsed, RequestFrame)
        assert parsed.id == id_
        assert parsed.id != other


# Read liberally


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (frame(method="m", params=None), NotificationFrame("m")),
        (frame(id=1, method="m", params=None, result=None, error=None), RequestFrame(1, "m")),
        (frame(method="m", params={}, result=None, error=None), NotificationFrame("m", Raw(b"{}"))),
        (frame(id=1, method=None, params=None, result={}, error=None), ResponseFrame(1, Raw(b"{}"))),
        (frame(id=1, result=None, error=None), ResponseFrame(1, Raw(b"null"))),
        (frame(id=1, result=None, error={"code": -32000, "message": "no"}), ResponseFrame(1, error=failed())),
    ],
)
def test_members_written_as_null_count_as_absent(text, message):
    assert parse(text) == message


@pytest.mark.parametrize(("spelled", "id_"), [(b"1.0", 1), (b"-2.0", -2), (b"1e3", 1000), (b"0.0", 0), (b"-0.0", 0)])
def test_a_whole_number_is_an_integer_id_however_it_is_spelled(spelled, id_):
    for text, message in (
        (b'{"jsonrpc":"2.0","id":%b,"method":"m"}', RequestFrame(id_, "m")),
        (b'{"jsonrpc":"2.0","id":%b,"result":{}}', ResponseFrame(id_, Raw(b"{}"))),
    ):
        parsed = parse(text % spelled)
        assert parsed == message
        assert not isinstance(parsed, NotificationFrame | Malformed)
        assert type(parsed.id) is int


def test_ids_may_be_larger_than_any_machine_word():
    assert parse(b'{"jsonrpc":"2.0","id":%d,"method":"m"}' % 10**30) == RequestFrame(10**30, "m")


def test_members_that_nobody_knows_are_ignored():
    assert parse(frame(method="m", params={"a": 1}, _meta={"trace": 1})) == NotificationFrame("m", Raw(b'{"a":1}'))
    assert parse(frame(id=1, extra=[], result={})) == ResponseFrame(1, Raw(b"{}"))


def test_the_last_of_several_members_of_one_name_wins():
    assert parse(b'{"jsonrpc":"2.0","id":true,"id":2,"method":5,"method":"m"}') == RequestFrame(2, "m")
    assert parse(b'{"jsonrpc":"2.0","method":"m","params":[],"params":{}}') == NotificationFrame("m", Raw(b"{}"))
    assert isinstance(parse(b'{"jsonrpc":"2.0","method":"m","params":{},"params":[{}]}'), Malformed)
    assert isinstance(parse(b'{"jsonrpc":"2.0","jsonrpc":"1.0","method":"m","params":{}}'), Malformed)


def test_a_byte_order_mark_is_ignored():
    assert parse(b"\xef\xbb\xbf" + frame(id=1, method="m")) == RequestFrame(1, "m")


@pytest.mark.parametrize(
    ("error", "read"),
    [
        ({"code": 500, "message": "no"}, failed(500)),
        ({"code": 1.0, "message": "no"}, failed(1)),
        ({"code": 1.5, "message": "no"}, failed(INTERNAL_ERROR)),
        ({"code": "ENOENT", "message": "no"}, failed(INTERNAL_ERROR)),
        ({"code": True, "message": "no"}, failed(INTERNAL_ERROR)),
        ({"code": None, "message": "no"}, failed(INTERNAL_ERROR)),
        ({"message": "no"}, failed(INTERNAL_ERROR)),
        ({"code": -32000}, failed(message="")),
        ({"code": -32000, "message": None}, failed(message="")),
        ({"code": -32000, "message": {"text": "no"}}, failed(message="")),
        ({"code": -32000, "message": "no", "data": None}, failed()),
        ({"code": -32000, "message": "no", "data": "text"}, failed(data="text")),
        ({"code": -32000, "message": "no", "data": [1, {"a": None}]}, failed(data=[1, {"a": None}])),
        ({"code": -32000, "message": "no", "stack": "..."}, failed()),
        ({}, failed(INTERNAL_ERROR, "")),
        ("no", failed(INTERNAL_ERROR)),
        (["no"], failed(INTERNAL_ERROR, "", ["no"])),
        (500, failed(INTERNAL_ERROR, "", 500)),
        (False, failed(INTERNAL_ERROR, "", False)),
    ],
)
def test_errors_are_read_however_odd(error, read):
    assert parse(frame(id=1, error=error)) == ResponseFrame(1, error=read)


@pytest.mark.parametrize("code", [b"1e400", b"9" * 5000, b"-1e400"])
def test_an_error_code_of_any_size_does_not_cost_the_answer(code):
    text = b'{"jsonrpc":"2.0","id":1,"error":{"code":%b,"message":"no"}}' % code
    assert parse(text) == ResponseFrame(1, error=failed(INTERNAL_ERROR))


@pytest.mark.parametrize("extra", [{}, {"id": None}])
def test_an_error_without_an_id_says_that_the_peer_could_not_read_us(extra):
    assert parse(frame(error={"code": -32700, "message": "what?"}, **extra)) == ResponseFrame(
        None, error=ErrorObject(PARSE_ERROR, "what?")
    )


# Bad input

PARAMS_NO_OBJECT = [[], [1, 2], [{}], "text", "{}", 1, 1.5, True, False]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"\x00",
        b"\xff",
        b"Loading the model...",
        b"{",
        b'{"jsonrpc":"2.0","method":"m"',
        b'{"jsonrpc":"2.0","method":"m",}',
        b'{"jsonrpc":"2.0","method":"m"} {}',
        b'{"jsonrpc":"2.0","method":"a\nb"}',
        b'{"jsonrpc":"2.0","method":"\\x"}',
        b"{'jsonrpc':'2.0','method':'m'}",
        b'{"jsonrpc":"2.0","method":"m","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"a":-Infinity}}',
        b'{"jsonrpc":"2.0","method":"m","params":{"a":01}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":Infinity}}',
        b"NaN",
        b"[1,",
    ],
)
def test_what_is_no_json_is_a_parse_error_under_null(text):
    parsed = parse(text)
    assert isinstance(parsed, Malformed)
    assert (parsed.code, parsed.id, parsed.answerable, parsed.pending) == (PARSE_ERROR, None, True, None)


@pytest.mark.parametrize("batch", [[], [1], [{"jsonrpc": "2.0", "id": 1, "method": "m"}], [[]]])
def test_an_array_gets_one_answer_saying_that_there_are_no_batches(batch):
    reply = parse(json.dumps(batch).encode()).reply()
    assert json.loads(reply) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": INVALID_REQUEST,
            "message": "Invalid request: ACP has no batches; send each message on its own",
        },
    }


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"1", "object"),
        (b'"text"', "object"),
        (b"null", "object"),
        (b"true", "object"),
        (b"{}", "jsonrpc"),
        (b'{"method":"m","params":{}}', "jsonrpc"),
        (frame(jsonrpc="1.0", method="m", params={}), "jsonrpc"),
        (frame(jsonrpc="", method="m", params={}), "jsonrpc"),
        (frame(), "method"),
        (frame(params={}), "method"),
        (frame(method=5, params={}), "method"),
        (frame(method=["m"]), "method"),
        (frame(method={"m": {}}), "method"),
        *[(frame(method="m", params=params), "params") for params in PARAMS_NO_OBJECT],
        (frame(id=True, method="m"), "id"),
        (frame(id=None, method="m"), "id"),
        (frame(id={}, method="m"), "id"),
        (frame(id=[1], method="m"), "id"),
        (frame(id=1.5, method="m", params={}), "id"),
        (b'{"jsonrpc":"2.0","id":1e400,"method":"m"}', "id"),
        (b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % (b"9" * 5000), "id"),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request_under_null(text, word):
    parsed = parse(text)
    assert isinstance(parsed, Malformed)
    assert (parsed.code, parsed.id, parsed.answerable, parsed.pending) == (INVALID_REQUEST, None, True, None)
    assert word in parsed.problem


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b'{"id":1,"method":"m"}', "jsonrpc"),
        (frame(jsonrpc="1.0", id=1, method="m"), "jsonrpc"),
        (frame(jsonrpc=2.0, id=1, method="m"), "jsonrpc"),
        (frame(jsonrpc=None, id=1, method="m"), "jsonrpc"),
        (frame(jsonrpc=["2.0"], id=1, method="m"), "jsonrpc"),
        (frame(id=1, params={}), "method"),
        (frame(id=1, method=None, params={}), "method"),
        (frame(id=1, method=5), "method"),
        *[(frame(id=1, method="m", params=params), "params") for params in PARAMS_NO_OBJECT],
    ],
)
def test_a_request_that_is_no_valid_message_is_answered_under_its_id(text, word):
    parsed = parse(text)
    assert isinstance(parsed, Malformed)
    assert (parsed.code, parsed.id, parsed.answerable, parsed.pending) == (INVALID_REQUEST, 1, True, None)
    assert word in parsed.problem


@pytest.mark.parametrize(
    ("text", "pending"),
    [
        (frame(id=1, result={}, error={"code": 1, "message": "no"}), 1),
        (frame(id="a", result=0, error={"code": 1, "message": "no"}), "a"),
        (frame(id=1), 1),
        (frame(id=1, params=None), 1),
        (frame(id=1, error=None), 1),
        (b'{"id":1,"result":{}}', 1),
        (b'{"id":1,"error":{"code":1,"message":"no"}}', 1),
        (frame(jsonrpc="1.0", id=1.0, result={}), 1),
        (frame(id=None), None),
        (frame(id=None, result={}), None),
        (frame(result={}), None),
        (frame(id=True, result={}), None),
        (frame(id=1.5, result={}), None),
        (frame(id=True, error={"code": 1, "message": "no"}), None),
        (frame(id={}, error={"code": 1, "message": "no"}), None),
        (frame(id=None, result={}, error={"code": 1, "message": "no"}), None),
    ],
)
def test_a_wrong_answer_is_never_answered_and_names_the_request_that_fails(text, pending):
    parsed = parse(text)
    assert isinstance(parsed, Malformed)
    assert (parsed.code, parsed.answerable, parsed.pending) == (INVALID_REQUEST, False, pending)
    assert parsed.reply() is None


@pytest.mark.parametrize("outcome", [{"result": {}}, {"error": {"code": 1, "message": "no"}}, {"result": 0}])
def test_an_outcome_beside_a_method_is_answered_and_fails_the_request_that_may_wait_for_it(outcome):
    parsed = parse(frame(id=1, method="m", params={}, **outcome))
    assert isinstance(parsed, Malformed)
    assert (parsed.code, parsed.id, parsed.answerable, parsed.pending) == (INVALID_REQUEST, None, True, 1)
    parsed = parse(frame(method="m", **outcome))
    assert isinstance(parsed, Malformed)
    assert (parsed.id, parsed.answerable, parsed.pending) == (None, True, None)


@pytest.mark.parametrize(
    ("text", "pending"),
    [
        (b'{"jsonrpc":"2.0","id":5,"result":{"cost":NaN}}', 5),
        (b'{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"no","data":[Infinity]}}', "a"),
        (b'{"jsonrpc":"2.0","id":5,"result":{"text":"a\tb"}}', 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"m","params":{"cost":NaN}}', None),
    ],
)
def test_an_answer_that_is_not_quite_json_still_names_the_request_that_fails(text, pending):
    parsed = parse(text)
    assert isinstance(parsed, Malformed)
    assert (parsed.code, parsed.id, parsed.pending) == (PARSE_ERROR, None, pending)


def test_a_reply_is_an_error_answer():
    assert parse(Malformed(INVALID_REQUEST, "no such thing", id="a").reply()) == ResponseFrame(
        "a", error=ErrorObject(INVALID_REQUEST, "Invalid request: no such thing")
    )
    assert parse(parse(b"{").reply()).error.message.startswith("Parse error: ")


# Deep nesting

refused = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="Python has the stack for all levels within the bounds"
)

DEEP = [b"[" * 40_000 + b"]" * 40_000, b'{"a":' * 40_000 + b"1" + b"}" * 40_000, b"[" * 40_000]


@refused
@pytest.mark.parametrize("deep", DEEP, ids=["arrays", "objects", "unclosed"])
def test_what_is_nested_too_deeply_is_refused(deep):
    parsed = parse(deep)
    assert isinstance(parsed, Malformed)
    assert (parsed.code, parsed.id, parsed.answerable, parsed.pending) == (INVALID_REQUEST, None, True, None)


@refused
@pytest.mark.parametrize("deep", DEEP[:2], ids=["arrays", "objects"])
def test_a_call_nested_too_deeply_is_answered_under_its_own_id(deep):
    parsed = parse(b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":%b}}' % deep)
    assert parsed == Malformed(INVALID_REQUEST, "nested too deeply", id=7)


@refused
@pytest.mark.parametrize("deep", DEEP[:2], ids=["arrays", "objects"])
@pytest.mark.parametrize("form", [b'"result":%b', b'"error":{"code":1,"message":"no","data":%b}', b'"result":[%b,NaN]'])
def test_an_answer_nested_too_deeply_fails_its_request(form, deep):
    parsed = parse(b'{"jsonrpc":"2.0","id":7,%b}' % (form % deep))
    assert parsed == Malformed(INVALID_REQUEST, "nested too deeply", answerable=False, pending=7)


# Bad text

HALF = b"\\ud83d"


def test_half_of_an_emoji_does_not_cost_the_message():
    params = b'{ "text":"a%bb", "n":[1.10,1e400,%b] }' % (HALF, b"9" * 5000)
    for text, message in (
        (b'{"jsonrpc":"2.0","method":"m","params":%b}', NotificationFrame("m", Raw(params))),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params" : %b }', RequestFrame(1, "m", Raw(params))),
        (b'{"result":%b,"jsonrpc":"2.0","id":1}', ResponseFrame(1, Raw(params))),
    ):
        assert parse(text % params) == message


def test_half_of_an_emoji_stays_half_wherever_it_is():
    text = b'{"jsonrpc":"2.0","id":"%b","method":"m%b"}' % (HALF, HALF)
    assert parse(text) == RequestFrame("\ud83d", "m\ud83d")
    text = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"%b","data":"\\udc00"}}' % HALF
    assert parse(text) == ResponseFrame(1, error=ErrorObject(1, "\ud83d", "\udc00"))


def test_bytes_that_are_no_utf_8_are_replaced_where_they_are_read():
    assert parse(b'{"jsonrpc":"2.0","id":"\xff","method":"m\xed\xa0\xbd"}') == RequestFrame(
        "\ufffd", "m\ufffd\ufffd\ufffd"
    )
    text = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"caf\xe9"}}'
    assert parse(text) == ResponseFrame(1, error=ErrorObject(1, "caf\ufffd"))
    text = b'{"jsonrpc":"2.0","\xff":1,"method":"m","params":{"text":"caf\xe9"}}'
    assert parse(text) == NotificationFrame("m", Raw('{"text":"caf\ufffd"}'))


def test_numbers_of_any_size_are_passed_on_as_they_are():
    params = b'{"n":[1e400,-1e400,%b,0.%b]}' % (b"9" * 5000, b"3" * 5000)
    assert parse(b'{"jsonrpc":"2.0","method":"m","params":%b}' % params) == NotificationFrame("m", Raw(params))


# Any input

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=5)
near_messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | json_values,
        "id": st.integers() | st.text() | st.floats() | json_values,
        "method": st.text() | json_values,
        "params": json_objects | json_values,
        "result": json_values,
        "error": st.fixed_dictionaries({}, optional={"code": json_values, "message": json_values, "data": json_values})
        | json_values,
        "extra": json_objects,
    },
)
ids = st.integers() | st.text()
methods = st.text()
halves = st.text(st.characters(exclude_categories=())).map(
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # two halves are a whole
)


def kind(members: dict[str, Any]) -> type:
    """What a message is, by the rules alone."""
    given_members = {name for name, value in members.items() if value is not None}
    id_ = members.get("id")
    good_id = type(id_) in (int, str) or (isinstance(id_, float) and id_.is_integer())
    if members.get("jsonrpc") != "2.0":
        return Malformed
    match tuple(name in given_members for name in ("method", "result", "error")):
        case (True, False, False):
            if not isinstance(members["method"], str) or not isinstance(members.get("params"), dict | None):
                return Malformed
            return RequestFrame if good_id else Malformed if "id" in members else NotificationFrame
        case (False, True, False):
            return ResponseFrame if good_id else Malformed
        case (False, False, True):
            return ResponseFrame if good_id or id_ is None else Malformed
        case (False, False, False):
            return ResponseFrame if good_id and "result" in members else Malformed
        case _:
            return Malformed


def strictly(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


@unhurried
@given(near_messages, st.booleans(), st.sampled_from([None, 1]), st.randoms())
def test_any_object_becomes_what_the_rules_say(value, ascii_only, indent, random):
    members = list(value.items())
    random.shuffle(members)
    text = json.dumps(dict(members), ensure_ascii=ascii_only, indent=indent)
    parsed = parse(text.encode())
    try:
        assert type(parsed) is kind(strictly(text))
    except ValueError:
        assert parsed.code == PARSE_ERROR


@unhurried
@given(near_messages, st.sampled_from([(",", ":"), (" , ", " : ")]))
def test_the_fast_way_and_the_careful_way_agree(value, separators):
    text = json.dumps(value, separators=separators).encode()
    assert parse(text) == wire_messages._parse_with_care(text)


def assert_is_one_of_four(parsed: object) -> None:
    assert isinstance(parsed, RequestFrame | NotificationFrame | ResponseFrame | Malformed)
    if isinstance(parsed, Malformed) and (reply := parsed.reply()) is not None:
        assert isinstance(parse(reply), ResponseFrame)


@unhurried
@given(st.binary() | st.text().map(str.encode) | st.text('{}[]",:\\ \n1e.-ntu"id').map(str.encode))
@example(b'{"jsonrpc":"1.0"}')
@example(b'{"jsonrpc":""}')
@example(b'{"jsonrpc":"","method":{}}')
def test_any_bytes_become_one_of_four(text):
    assert_is_one_of_four(parse(text))


@unhurried
@given(st.sampled_from([text for text, _ in GOOD]), st.data())
def test_any_damage_to_a_message_leaves_one_of_four(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 5, len(text))))
    damage = data.draw(st.binary(max_size=5) | st.sampled_from([HALF, b"{", b"}", b'"', b"\\", b"1e999", b"[" * 5000]))
    assert_is_one_of_four(parse(text[:start] + damage + text[end:]))


@unhurried
@given(json_values)
def test_any_json_value_becomes_one_of_four(value):
    assert_is_one_of_four(parse(json.dumps(value).encode()))


# Encoding


def test_frames_are_written_without_spaces_in_the_usual_order():
    assert encode_request(1, "m", b'{"a":1}') == b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}'
    assert encode_request("a", "m") == b'{"jsonrpc":"2.0","id":"a","method":"m"}'
    assert encode_notification("m", Raw(b"{}")) == b'{"jsonrpc":"2.0","method":"m","params":{}}'
    assert encode_notification("m") == b'{"jsonrpc":"2.0","method":"m"}'
    assert encode_response(1, b"null") == b'{"jsonrpc":"2.0","id":1,"result":null}'
    assert encode_error(None, -1, "no") == b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}'
    assert (
        encode_error("a", -1, "no", {"b": [1]})
        == b'{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no","data":{"b":[1]}}}'
    )


@unhurried
@given(ids | halves, methods | halves, st.none() | json_objects)
def test_calls_and_tells_are_read_as_they_were_written(id_, method, params):
    raw = None if params is None else Raw(json.dumps(params))
    assert parse(encode_request(id_, method, raw)) == RequestFrame(id_, method, raw)
    assert parse(encode_notification(method, raw)) == NotificationFrame(method, raw)


@unhurried
@given(ids | halves, json_values)
def test_answers_are_read_as_they_were_written(id_, result):
    raw = Raw(json.dumps(result))
    assert parse(encode_response(id_, raw)) == ResponseFrame(id_, raw)


@unhurried
@given(st.none() | ids | halves, st.integers(), st.text() | halves, json_values | halves)
def test_errors_are_read_as_they_were_written(id_, code, message, data):
    assert parse(encode_error(id_, code, message, data)) == ResponseFrame(id_, error=ErrorObject(code, message, data))


def test_an_error_whose_data_cannot_be_written_goes_out_without_it():
    circle: list[Any] = []
    circle.append(circle)
    for data in (object(), circle, {"\ud83d": object()}, ["\ud83d", float("nan")], 10**5000):
        assert parse(encode_error(1, -1, "no", data)) == ResponseFrame(1, error=ErrorObject(-1, "no"))


def test_a_frame_is_one_line():
    text = encode_error("a\nb", -1, "no\r\n", {"\n": "\r\n"}) + encode_request("\n", "\n") + encode_notification("\n")
    assert b"\n" not in text
    assert b"\r" not in text


def test_methods_that_are_remembered_are_bounded():
    for number in range(2000):
        encode_notification(f"m{number}")
    assert wire_messages._method.cache_info().currsize <= 512
