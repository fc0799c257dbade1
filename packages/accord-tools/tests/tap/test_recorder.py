"""What the recorder of a tap writes of the parcels that reach it."""

import io
import time

import msgspec

from accord import trace
from accord_tools.tap.recorder import LONGEST_LINE, record
from accord_tools.tap.recorder_protocol import PROCESS, STDERR, Parcel, RecordingPlan, pack


def recorded(path, *parcels):
    """The events of these parcels: kinds with contents."""
    plan = msgspec.json.encode(RecordingPlan(path=str(path), began=time.monotonic()))
    content = b"".join(pack(Parcel(kind, 1.0, content)) for kind, content in ((PROCESS, plan), *parcels))
    assert record(io.BytesIO(content)) is None
    return list(trace.read(path))


def test_a_line_of_standard_error_that_is_too_long_is_noted_as_one(tmp_path):
    long = b"x" * (LONGEST_LINE + 1)
    ended = (PROCESS, b'{"event": "exited", "code": 0}')
    events = recorded(tmp_path / "trace.jsonl", (STDERR, b"short\n" + long + b"\n"), ended)
    assert [it.stderr for it in events if it.stderr] == ["short"]
    assert [it.note for it in events if it.note] == [
        f"lost: a line of standard error of {LONGEST_LINE + 1:,} bytes is too long to be recorded"
    ]
