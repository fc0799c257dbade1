"""However damaged a message is, reading it as its type takes a bounded number of steps. Steps are calls, not time."""

import json
import sys

import pytest

from accord import v1, v2
from accord.errors import DecodeError
from accord.jsonrpc.frame_structure import DAMAGED, MISFIT
from accord.schema import tolerant
from accord.schema.codec import decode

MANY = 60_000
MIB = 1024 * 1024

ITEMS = {
    "no objects": b"5",
    "objects without their fields": b'{"type":"image"}',
    "a bad annotation each": b'{"type":"text","text":"x","annotations":5}',
    "variants that are not known": b'{"type":"hologram"}',
    "a wrong choice each": b'{"type":"resource","resource":{"uri":5}}',
}

HOLDERS = [
    (v1.PromptRequest, b'{"sessionId":"s","prompt":[%b]}', b"%b"),
    (v2.PromptRequest, b'{"sessionId":"s","prompt":[%b]}', b"%b"),
    (v1.ToolCall, b'{"toolCallId":"t","title":"T","content":[%b]}', b'{"type":"content","content":%b}'),
    (v1.Plan, b'{"entries":[%b]}', b"%b"),
]


def calls_of(work):
    """How many calls this makes, whether it ends in a DecodeError or not; and the error."""
    calls, raised = 0, None

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    except DecodeError as error:
        raised = error
    finally:
        sys.setprofile(None)
    return calls, raised


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
@pytest.mark.parametrize(("hint", "holder", "each"), HOLDERS, ids=lambda it: getattr(it, "__module__", ""))
def test_a_list_of_damaged_items_is_refused_after_a_bounded_number_of_them(hint, holder, each, item):
    def read(items):
        text = holder % b",".join([each % item] * items)
        return calls_of(lambda: decode(text, hint))

    few, _ = read(100)
    many, _ = read(MANY)
    assert many < few / 100 * 1.2 * tolerant.MOST_REPAIRS + 2_000


@pytest.mark.parametrize("item", [b'{"type":"hologram"}', b'{"type":"text","text":"x","annotations":5}'])
def test_a_message_with_too_many_damaged_values_is_refused_and_says_so(item):
    def read(items):
        return decode(b'{"sessionId":"s","prompt":[%b]}' % b",".join([item] * items), v1.PromptRequest)

    assert len(read(tolerant.MOST_REPAIRS // 4).prompt) == tolerant.MOST_REPAIRS // 4
    with pytest.raises(DecodeError, match=r"more than 10,000 values are damaged or unknown: send fewer"):
        read(tolerant.MOST_REPAIRS + 1)
    assert len(read(10).prompt) == 10  # each message is counted on its own


@pytest.mark.parametrize("number", [b"1", b"1.5", b"1e5"])
def test_damaged_text_holds_a_bounded_number_of_values(number):
    def text(values):
        return b'{"sessionId":"s","path":"\\ud83d","_meta":{"a":[%b]}}' % b",".join([number] * values)

    assert decode(text(1_000), v1.ReadTextFileRequest).path == "\ud83d"
    calls, error = calls_of(lambda: decode(text(DAMAGED.values + 10), v1.ReadTextFileRequest))
    assert "more than 100,000 values in one message: send fewer" in str(error)
    assert calls < 1_000


def test_a_message_with_one_error_holds_a_bounded_number_of_objects():
    def text(objects):
        blocks = b'{"type":"text","text":"x"},' * objects
        return b'{"sessionId":"s","prompt":[%b{"type":"text","text":"x","annotations":5}]}' % blocks

    assert len(decode(text(MISFIT.containers // 2), v1.PromptRequest).prompt) == MISFIT.containers // 2 + 1
    calls, error = calls_of(lambda: decode(text(MISFIT.containers), v1.PromptRequest))
    assert "not of the expected form, and more than 15,000 arrays and objects in one message: send fewer" in str(error)
    assert calls < 3_000


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (v1.PermissionOption, b'{"optionId":"x","name":"y","kind":"%b"}'),
        (v1.RequestPermissionRequest, b'{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"kind":"%b"}]}'),
        (v1.ReadTextFileRequest, b'{"sessionId":"x","path":5,"%b":1}'),
        (v1.PromptResponse, b'{"stopReason":{"%b":1}}'),
        (v1.TextContent, b'{"type":"%b"}'),
        (dict[str, int], b'{"%b":"x"}'),
        (dict[str, dict[str, v1.TextContent]], b'{"a":{"%b":5}}'),
    ],
)
def test_an_error_quotes_little_of_what_was_wrong(hint, text):
    with pytest.raises(DecodeError) as caught:
        decode(text % (b"x" * MIB), hint)
    assert len(str(caught.value)) < 500


def test_a_large_value_that_is_not_known_is_shown_short():
    unknown = decode(json.dumps({"type": "x" * MIB, "y": ["z" * MIB] * 3}).encode(), v1.ContentBlock)
    assert len(repr(unknown)) < 1_000
