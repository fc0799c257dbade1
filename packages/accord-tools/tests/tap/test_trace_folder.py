"""Where traces are kept, and how those that are being written are found."""

import os
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from accord import trace
from accord_tools.tap import KeptTrace, LiveTap, announced, kept_traces, live_taps
from accord_tools.tap.trace_folder import make_room, new_path

RECORDER = """
import sys, time
from accord_tools.tap import LiveTap, announced
with announced(LiveTap(trace=sys.argv[1], started="2026-11-22T10:00:00+00:00", command=("gemini", "--acp"))):
    print("ready", flush=True)
    sys.stdin.read()
"""

posix = pytest.mark.skipif(os.name != "posix", reason="modes and signals of POSIX")


@pytest.fixture
def recorder():
    """Starts a process that announces a recording."""
    started = []

    def start(path):
        process = subprocess.Popen(
            [sys.executable, "-c", RECORDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_live_recording_is_found_and_its_descriptor_goes_with_it(recorder, state, tmp_path):
    process = recorder(tmp_path / "wire.jsonl")
    (tap,) = live_taps()
    assert (tap.trace, tap.command) == (str(tmp_path / "wire.jsonl"), ("gemini", "--acp"))
    process.communicate(b"")
    assert live_taps() == []
    assert list((state / "taps").iterdir()) == []


@posix
def test_a_descriptor_is_its_owner_s_alone(recorder, state, tmp_path):
    recorder(tmp_path / "wire.jsonl")
    (descriptor,) = (state / "taps").iterdir()
    assert stat.S_IMODE(descriptor.stat().st_mode) == 0o600


@posix
def test_a_killed_recorder_leaves_a_descriptor_that_is_seen_to_be_stale(recorder, state, tmp_path):
    process = recorder(tmp_path / "wire.jsonl")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(list((state / "taps").iterdir())) == 1
    assert live_taps() == []
    assert list((state / "taps").iterdir()) == []


def test_a_recording_in_another_file_updates_its_descriptor(tmp_path):
    with announced(LiveTap(trace="a" * 500, started="2026")) as announcement:
        announcement.update(trace="b")
        assert [tap.trace for tap in live_taps()] == ["b"]


def test_a_state_folder_that_cannot_be_written_does_not_keep_a_recording_from_going_on(state):
    state.parent.mkdir(parents=True)
    state.write_text("a file in place of the folder")
    with announced(LiveTap(trace="a", started="2026")) as announcement:
        assert announcement is None
    assert live_taps() == []


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"trace":7}'])
def test_a_descriptor_that_cannot_be_read_is_left_out(recorder, state, tmp_path, content):
    recorder(tmp_path / "wire.jsonl")
    (descriptor,) = (state / "taps").iterdir()
    descriptor.write_bytes(content)
    assert live_taps() == []


def kept(program, size=0, changed=None):
    path = new_path([program], datetime.now(UTC), 7)
    writer = trace.TraceFile(path, role="tap")
    writer(trace.TraceEvent(0.0, "in", stderr="x" * size))
    writer.close()
    if changed is not None:
        os.utime(path, (changed, changed))
    return path


def test_kept_traces_are_listed_with_the_live_ones_first_then_the_newest(recorder, tmp_path):
    old, new = kept("old", changed=1_000), kept("new", changed=2_000)
    elsewhere = tmp_path / "wire.jsonl"
    trace.TraceFile(elsewhere, role="client").close()
    recorder(elsewhere)
    found = kept_traces()
    assert [it.path for it in found] == [str(elsewhere), str(new), str(old)]
    assert [it.live is not None for it in found] == [True, False, False]
    assert [it.header.role for it in found] == ["client", "tap", "tap"]


def test_a_kept_file_that_is_no_trace_is_listed_without_a_header(state):
    path = kept("agent")
    path.write_text("something else\n")
    (found,) = kept_traces()
    assert isinstance(found, KeptTrace)
    assert found.header is None


def test_the_oldest_traces_are_removed_until_the_rest_fits_but_none_that_is_live(recorder):
    live, old, new = (kept(name, 1_000, changed) for name, changed in (("live", 1), ("old", 2), ("new", 3)))
    recorder(live)
    make_room(2_500)
    assert [path.exists() for path in (live, old, new)] == [True, False, True]


def test_no_name_of_a_program_leads_out_of_the_folder():
    path = new_path(["../../bin/evil name;"], datetime.now(UTC), 7)
    assert path.parent == path.parents[1] / "traces"
    assert path.name.split("-", 5)[-1].startswith("evil-name-")
