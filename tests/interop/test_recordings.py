"""Recorded conversations of real agents are read, folded and written again without loss, beyond what is named here."""

import json

import pytest
from interop.recordings import RECORDED

from accord.schema.base import Unknown
from accord.schema.codec import decode, decode_keeping, encode
from accord.schema.methods import methods
from accord.session import SessionState, ToolCallState

RECORDINGS = sorted(RECORDED.glob("*.jsonl"))
EXTRAS = json.loads((RECORDED / "extras.json").read_text())
"""What agents send beside the protocol, which only `decode_keeping` keeps: places by agent."""


def frames(recording):
    return [event["frame"] for line in recording.read_text().splitlines() if "frame" in (event := json.loads(line))]


def typed_parts(recording):
    """Each message's method, its JSON and the type that it is read as."""
    asked = {}
    for frame in frames(recording):
        if "method" in frame:
            asked[frame.get("id")] = frame["method"]
            row = methods(1).request(frame["method"]) or methods(1).notification(frame["method"])
            if row is not None:
                yield frame["method"], frame.get("params", {}), row.params
        elif "result" in frame and (row := methods(1).request(asked.get(frame["id"], ""))) is not None:
            yield f"{row.name} result", frame["result"], row.result


def lost(before, after, place):
    """Where something that was there is not, or is another."""
    if isinstance(before, dict):
        for key, value in before.items():
            if value is not None and not (key not in after and value in ([], {}, False)):
                yield from lost(value, after[key], f"{place}.{key}") if key in after else [f"{place}.{key}"]
    elif isinstance(before, list):
        if len(before) != len(after):
            yield place
        for item, other in zip(before, after, strict=False):
            yield from lost(item, other, f"{place}[]")
    elif before != after:
        yield place


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda it: it.stem)
def test_a_recording_is_read_and_written_again_without_loss(recording):
    found = set()
    for method, value, type_ in typed_parts(recording):
        typed = decode(json.dumps(value).encode(), type_)
        found |= set(lost(value, json.loads(encode(typed)), method))
    assert sorted(found) == EXTRAS.get(recording.stem, [])


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda it: it.stem)
def test_no_member_of_a_recording_is_lost_where_it_is_passed_on(recording):
    places = [
        place
        for method, value, type_ in typed_parts(recording)
        for place in lost(value, json.loads(encode(decode_keeping(json.dumps(value).encode(), type_))), method)
    ]
    assert places == []


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda it: it.stem)
def test_a_recording_folds_into_what_was_said(recording):
    states = {}
    for method, value, type_ in typed_parts(recording):
        if method == "session/update":
            notification = decode(json.dumps(value).encode(), type_)
            assert not isinstance(notification.update, Unknown), value
            states.setdefault(notification.session_id, SessionState()).add(notification.update)
    assert any("made of rules" in message.text for state in states.values() for message in state.messages)
    assert any(isinstance(it, ToolCallState) for state in states.values() for it in state.timeline)
