"""Tool calls of plain words are sent as patches without a conversion; the result is the same as with one."""

import itertools

import pytest

from accord import v1, v2
from accord.dialects.v2_dialect import V2Dialect
from accord.errors import ConversionError
from accord.schema import codec
from accord.schema.conversion import to_v2

ID = v1.ToolCallId("t")


def calls():
    """Tool calls with each mixture of fields, those that need a conversion among them."""
    kinds, names, raws = ("edit", None), ("edit_file", None), ({"path": "/a"}, None)
    places = ([], [v1.ToolCallLocation("/a", 3)])
    metas = (None, {"key": 1})
    for kind, name, raw, locations, meta in itertools.product(kinds, names, raws, places, metas):
        yield v1.ToolCall(ID, "Edit", kind, "pending", [], locations, raw, raw, name, meta=meta)
        for title, places_told in (("Edit", None), (None, locations)):
            yield v1.ToolCallProgress(
                ID, title=title, kind=kind, locations=places_told, raw_input=raw, name=name, meta=meta
            )


@pytest.mark.parametrize("call", list(calls()), ids=str)
def test_a_tool_call_is_told_as_its_conversion_says(call):
    assert list(V2Dialect().fitted(call)) == [to_v2(call)]


def test_a_title_that_is_no_text_is_refused_as_before():
    wrong = v1.ToolCallProgress(ID, title=5)  # type: ignore[arg-type]
    with pytest.raises(ConversionError, match="title"):
        V2Dialect().fitted(wrong)


@pytest.mark.parametrize("activity", ["running", "requires_action", "idle"])
@pytest.mark.parametrize("stop_reason", [None, "end_turn", "a reason of the author's"])
def test_a_plain_state_is_the_json_of_the_state(activity, stop_reason):
    told = codec.decode(V2Dialect().plain_state(activity, stop_reason), v2.SessionUpdate)
    assert told == v2.SessionStateUpdate(activity, stop_reason)
