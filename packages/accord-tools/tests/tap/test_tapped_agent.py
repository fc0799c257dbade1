"""The tap between an editor and an agent: it changes nothing, records everything, and survives its recorder."""

import hashlib
import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from accord import trace
from accord_tools.tap import kept_traces, live_taps
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")

ECHO = """
while data := os.read(0, 1 << 16):
    while data:
        data = data[os.write(1, data):]
"""


def events(path):
    return list(trace.read(path))


def processes(path):
    return [event.process for event in events(path) if event.process]


def test_the_bytes_of_both_ways_are_the_same_whatever_they_are(tap):
    sent = random.Random(7).randbytes(3_000_000)
    process = tap("-o", "wire.jsonl", ECHO)
    received, _ = process.communicate(sent)
    assert hashlib.sha256(received).digest() == hashlib.sha256(sent).digest()
    assert process.returncode == 0


def test_a_trace_has_each_message_before_its_answer(tap, tmp_path):
    process = tap("-o", "wire.jsonl", ECHO)
    messages = [b'{"jsonrpc":"2.0","id":%d,"method":"_m"}\n' % number for number in range(300)]
    for message in messages:
        process.stdin.write(message)
        process.stdin.flush()
        assert process.stdout.readline() == message
    process.communicate()
    recorded = [(event.direction, event.frame + b"\n") for event in events(tmp_path / "wire.jsonl") if event.frame]
    assert recorded == [(way, message) for message in messages for way in ("out", "in")]
    times = [event.time for event in events(tmp_path / "wire.jsonl")]
    assert times == sorted(times)


def test_a_trace_tells_of_standard_error_and_of_the_process(tap, tmp_path):
    process = tap("-o", "wire.jsonl", "os.write(2, b'oops\\nno newline'); sys.stdin.read(); sys.exit(3)")
    _, errors = process.communicate(b"")
    assert process.returncode == 3
    assert errors == b"oops\nno newline"
    path = tmp_path / "wire.jsonl"
    assert [event.stderr for event in events(path) if event.stderr] == ["oops", "no newline"]
    started, *others = processes(path)
    assert (started["event"], started["command"][-1][:6]) == ("started", "import")
    assert others[0] == {"event": "closed", "stream": "stdin"}
    assert others[-1] == {"event": "exited", "code": 3}
    header = trace.read_header(path)
    assert (header.role, header.cwd, header.masked) == ("tap", str(tmp_path), True)


@linux
def test_an_agent_that_is_not_read_has_to_wait(tap, tmp_path):
    process = tap("-o", "wire.jsonl", "for n in range(400):\n os.write(1, b'x' * 500_000 + b'\\n'); os.write(2, b'.')")
    agent = started_agent(process)
    looks = []

    def is_stuck():
        assert Path(f"/proc/{agent}").exists(), "it wrote 200 MB that were not read"
        looks.append(Path(f"/proc/{agent}/io").read_text().split("wchar: ")[1].split()[0])
        return len(looks) > 50 and len(set(looks[-50:])) == 1

    wait_until(is_stuck)
    assert int(looks[-1]) < 20_000_000
    assert len(process.communicate()[0]) == 400 * 500_001


def started_agent(process):
    """The agent's process, as the descriptor of the live tap says."""
    found = []
    wait_until(lambda: found.extend(it.agent for it in live_taps() if it.pid == process.pid and it.agent) or found)
    return found[0]


HANDLES = """
signals = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
os.write(1, b"ready\\n")
while (number := signal.sigwait(signals)) != signal.SIGTERM: os.write(1, b"got %d\\n" % number)
os.write(1, b"got %d\\n" % number)
os._exit(5)
"""


def test_signals_are_for_the_agent_which_may_go_on(tap, tmp_path):
    process = tap("-o", "wire.jsonl", HANDLES)
    assert process.stdout.readline() == b"ready\n"
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGTERM):
        process.send_signal(number)
        assert process.stdout.readline() == b"got %d\n" % number
    process.communicate()
    assert process.returncode == 5
    signalled = [it["signal"] for it in processes(tmp_path / "wire.jsonl") if it["event"] == "signalled"]
    assert signalled == ["SIGINT", "SIGUSR1", "SIGTERM"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_tap_ends_as_its_agent_was_ended(tap, tmp_path, number):
    process = tap("-o", "wire.jsonl", f"os.kill(os.getpid(), {int(number)})")
    process.communicate()
    assert process.returncode == -number
    assert processes(tmp_path / "wire.jsonl")[-1] == {"event": "exited", "signal": number.name}


def test_an_agent_whose_reader_is_gone_gets_a_broken_pipe(tap):
    process = tap("-o", "wire.jsonl", "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: os.write(1, b'x\\n')")
    assert process.stdout.readline() == b"x\n"
    process.stdout.close()
    assert process.wait(30) == -signal.SIGPIPE


def test_an_editor_whose_agent_stops_reading_gets_a_broken_pipe(tap):
    process = tap("-o", "wire.jsonl", "os.close(0); os.write(1, b'closed\\n'); sys.stdout.close(); signal.pause()")
    assert process.stdout.readline() == b"closed\n"

    def is_broken():
        try:
            os.write(process.stdin.fileno(), b"x\n")
        except BrokenPipeError:
            return True
        return False

    wait_until(is_broken)


def test_a_tap_ends_when_a_child_of_its_agent_holds_the_streams(tap, tmp_path):
    process = tap("-o", "wire.jsonl", "if os.fork(): os.write(1, b'last words\\n'); os._exit(4)\nsignal.pause()")
    assert process.stdout.readline() == b"last words\n"
    assert process.wait(30) == 4
    os.killpg(processes(tmp_path / "wire.jsonl")[0]["pid"], signal.SIGKILL)


DEAF = "signal.signal(signal.SIGTERM, lambda *_: os._exit(6))\nos.write(1, b'ready\\n')\nwhile True: signal.pause()"


@linux
def test_an_agent_that_does_not_read_is_ended_after_its_client_has_left(tap, marked, tmp_path):
    process = tap("-o", "wire.jsonl", DEAF)
    assert process.stdout.readline() == b"ready\n"
    fill(process.stdin.fileno())
    for name in ("stdin", "stdout", "stderr"):
        getattr(process, name).close()
        setattr(process, name, None)
    assert process.wait(30) == 6
    wait_until(lambda: marked() == [])
    assert {"event": "exited", "code": 6} in processes(tmp_path / "wire.jsonl")


def fill(descriptor):
    """Write until nothing is taken any more, so that all between here and the agent is full."""
    os.set_blocking(descriptor, False)
    refusals = 0

    def is_full():
        nonlocal refusals
        try:
            os.write(descriptor, b"x" * 4_096)
            refusals = 0
        except BlockingIOError:
            refusals += 1
        return refusals > 50

    wait_until(is_full)


@linux
@pytest.mark.usefixtures("fresh_programs")
def test_nothing_is_left_behind(tap, marked):
    process = tap(ECHO)
    process.stdin.write(b"hello\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"hello\n"
    assert len(marked()) >= 3
    process.communicate()
    assert marked() == []
    assert live_taps() == []


@linux
@pytest.mark.usefixtures("fresh_programs")
def test_a_killed_tap_takes_its_agent_along_and_its_trace_says_so(tap, marked, tmp_path):
    process = tap("-o", "wire.jsonl", "signal.signal(signal.SIGPIPE, signal.SIG_IGN)\nwhile True: time.sleep(60)")
    started_agent(process)
    process.kill()
    wait_until(lambda: marked() == [])
    assert events(tmp_path / "wire.jsonl")[-1].note == "lost: the tap ended before the agent did"


def test_a_full_disk_does_not_end_the_conversation(tap, tmp_path):
    limited = ["/bin/sh", "-c", 'ulimit -f 8; exec "$@"', "sh"]
    process = tap("-o", "wire.jsonl", ECHO, before=limited)
    for number in range(2_000):
        line = b'{"jsonrpc":"2.0","method":"_m","params":{"n":%d}}\n' % number
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == line
    _, errors = process.communicate()
    assert process.returncode == 0
    assert errors == b"accord trace: the recording is incomplete: File too large\n"
    assert len(events(tmp_path / "wire.jsonl")) > 10


def test_a_killed_recorder_does_not_end_the_conversation(tap):
    process = tap("-o", "wire.jsonl", ECHO)
    started_agent(process)
    (live,) = live_taps()
    os.kill(live.recorder, signal.SIGKILL)
    for _ in range(100):
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"hello\n"
    _, errors = process.communicate()
    assert process.returncode == 0
    assert errors == b"accord trace: the recording is incomplete: the recorder ended with signal 9\n"


def test_a_recorder_that_is_too_slow_loses_messages_and_says_how_many(tap, tmp_path):
    process = tap("-o", "wire.jsonl", ECHO)
    started_agent(process)
    (live,) = live_taps()
    os.kill(live.recorder, signal.SIGSTOP)
    line = b'"' + b"x" * 29_997 + b'"\n'
    for _ in range(1_300):  # twice as much for the recorder, which sees both ways
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == line
    os.kill(live.recorder, signal.SIGCONT)
    last = b'{"jsonrpc":"2.0","method":"_last"}\n'

    def is_recorded():
        process.stdin.write(b"\n" + last)
        process.stdin.flush()
        assert process.stdout.readline() + process.stdout.readline() == b"\n" + last
        return b'"_last"' in (tmp_path / "wire.jsonl").read_bytes()

    wait_until(is_recorded)
    process.communicate()
    notes = {event.direction: event.note for event in events(tmp_path / "wire.jsonl") if event.note}
    assert set(notes) == {"in", "out"}
    assert all(note.startswith("lost: ") and note.endswith("the recorder was too slow") for note in notes.values())


def test_a_trace_without_a_name_is_kept_and_found_while_it_grows(tap, state):
    process = tap([sys.executable, "-c", "input()"])
    agent = started_agent(process)
    (kept,) = kept_traces()
    assert Path(kept.path).parent == state / "traces"
    assert (kept.live.agent, kept.live.pid, kept.header.role) == (agent, process.pid, "tap")
    process.communicate(b"\n")
    (kept,) = kept_traces()
    assert kept.live is None


def test_a_large_recording_has_several_files_whose_times_go_on(tap, tmp_path):
    process = tap("-o", "wire.jsonl", "--max-size", "10K", ECHO)
    lines = [b'{"jsonrpc":"2.0","id":%d,"method":"_m"}\n' % number for number in range(400)]
    process.communicate(b"".join(lines))
    parts = sorted(tmp_path.glob("wire*.jsonl"), key=lambda path: trace.read_header(path).part)
    assert [path.name for path in parts[:3]] == ["wire.jsonl", "wire.2.jsonl", "wire.3.jsonl"]
    assert [trace.read_header(path).part for path in parts] == list(range(1, len(parts) + 1))
    assert len({trace.read_header(path).started for path in parts}) == 1
    recorded = [event for path in parts for event in events(path)]
    assert [event.frame + b"\n" for event in recorded if event.frame and event.direction == "out"] == lines
    assert [event.time for event in recorded] == sorted(event.time for event in recorded)
    assert all(path.stat().st_size < 12_000 for path in parts)


@pytest.mark.parametrize("options", [["-o", "wire.jsonl.gz"], ["-o", "wire.jsonl", "--gzip"]])
def test_a_complete_trace_is_compressed_on_request(tap, tmp_path, options):
    tap(*options, ECHO).communicate(b'{"jsonrpc":"2.0","method":"_hello"}\n' * 100)
    assert [path.name for path in tmp_path.glob("wire*")] == ["wire.jsonl.gz"]
    path = tmp_path / "wire.jsonl.gz"
    assert path.stat().st_mode & 0o777 == 0o600
    assert sum(event.frame is not None for event in events(path)) == 200


def test_secrets_are_masked_in_the_trace_and_not_on_the_wire(tap, tmp_path):
    message = {"jsonrpc": "2.0", "method": "_m", "params": {"apiKey": "s3cret"}}
    process = tap("-o", "wire.jsonl", ECHO)
    received, _ = process.communicate(json.dumps(message).encode() + b"\n")
    assert json.loads(received) == message
    assert b"s3cret" not in (tmp_path / "wire.jsonl").read_bytes()
    tap("-o", "open.jsonl", "--secrets", ECHO).communicate(json.dumps(message).encode() + b"\n")
    assert b"s3cret" in (tmp_path / "open.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-o", "link", "true"), "--output: cannot record in link: it is a symbolic link; name the file itself"),
        (("-o", "no/folder", "true"), "--output: cannot record in no/folder: No such file or directory"),
        (("--max-size", "many", "true"), "--max-size must be a positive number of bytes"),
        (("https://agents.example/acp",), "record a bridge to it: accord trace -- accord bridge URL"),
        ((), "name the agent: accord trace -- COMMAND..., or -a AGENT"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_the_agent_starts(tap, tmp_path, words, says):
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    *options, command = words or ((),)
    process = tap(*options, [command] if command else [])
    _, errors = process.communicate()
    assert says in errors.decode()
    assert process.returncode == 2


def test_an_agent_that_does_not_exist_is_said_to_be_missing(tap):
    process = tap(["no-such-agent"])
    _, errors = process.communicate()
    assert b"cannot start no-such-agent: command not found" in errors
    assert process.returncode == 1
