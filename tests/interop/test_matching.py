"""What a client printed is compared with what was expected of it."""

import pytest
from interop.matching import problems_of

NOTHING = {"updates": [], "asked": [], "told": [], "known": {}}


def chunk(text):
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def test_a_step_that_came_out_as_expected_has_no_problems():
    line = {**NOTHING, "result": {"stopReason": "end_turn", "more": 1}, "updates": [chunk("a"), chunk("b")]}
    assert problems_of({"result": {"stopReason": "end_turn"}, "text": "ab", "updates": [chunk("b")]}, line) == []


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ({"result": {"stopReason": "end_turn"}}, {"result": {"stopReason": "refusal"}}),
        ({"result": {"ok": True}}, {"result": {"ok": 1}}),
        ({"result": {"list": [1]}}, {"result": {"list": [1, 2]}}),
        ({"result": {}}, {"error": {"code": -32603}}),
        ({}, {"error": {"code": -32603}}),
        ({"error": {"code": -32602}}, {"result": {}}),
        ({"text": "ab"}, {"updates": [chunk("b"), chunk("a")]}),
        ({"numbered": 2}, {"updates": [chunk("1 "), chunk("0 ")]}),
        ({"updates": [chunk("a"), chunk("b")]}, {"updates": [chunk("b"), chunk("a")]}),
        ({"asked": [{"method": "fs/read_text_file"}]}, {}),
        ({"result": {"a": {"$any": True}}}, {"result": {}}),
        ({"result": {"a": {"$contains": "x"}}}, {"result": {"a": "y"}}),
        ({"text": {"$length": 3}}, {"updates": [chunk("ab")]}),
        ({"result": {"id": "<kept>"}}, {"result": {"id": "other"}, "known": {"kept": "this"}}),
        ({"result": {"a": None}}, {"result": {"a": 1}}),
        ({"result": {}}, {}),
    ],
)
def test_a_step_that_came_out_otherwise_has_problems(expected, line):
    assert problems_of(expected, {**NOTHING, **line})


def test_absent_and_null_are_the_same():
    assert problems_of({"result": {"nextCursor": None}}, {**NOTHING, "result": {}}) == []
    assert problems_of({"result": {"nextCursor": None}}, {**NOTHING, "result": {"nextCursor": None}}) == []
