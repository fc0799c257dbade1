"""A trace file is its owner's alone, and the connection goes on when it cannot be written."""

import io
import json
import os
import stat
import subprocess
import sys

import pytest

import accord
from accord import trace, v1

SECRET = "s3cret"
FULL = "/dev/full"
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason="a device that is always full")  # noqa: PTH110
posix = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
SERVERS = [v1.McpServerStdio("m", "true", [], [v1.EnvVariable("API_KEY", SECRET)])]


def echo():
    agent = accord.Agent("echo")

    @agent.on_prompt
    async def prompt(turn):
        await turn.say(f"you said {turn.text}")

    return agent


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@posix
def test_a_trace_is_made_for_its_owner_alone(tmp_path, usual_umask):
    path = tmp_path / "wire.jsonl"
    trace.TraceFile(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@posix
def test_a_trace_that_others_could_read_is_its_owner_s_alone_from_now_on(tmp_path):
    path = tmp_path / "wire.jsonl"
    path.write_text("old and much longer than a header" * 100)
    path.chmod(0o644)
    trace.TraceFile(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text().splitlines()) == 1


def linked(path):
    victim = path.with_name("victim")
    victim.write_text("precious")
    path.symlink_to(victim)


def dangling(path):
    path.symlink_to(path.with_name("nowhere"))


def named_twice(path):
    path.with_name("victim").write_text("precious")
    path.hardlink_to(path.with_name("victim"))


def open_to_others(path):
    path.write_text("precious")
    path.chmod(0o666)


@posix
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (linked, "it is a symbolic link; name the file itself"),
        (dangling, "it is a symbolic link; name the file itself"),
        (named_twice, "it has a second name (a hard link); choose another file"),
        (open_to_others, "other users can write it; chmod go-w, or choose another file"),
        (os.mkdir, "Is a directory"),
        (os.mkfifo, "No such device or address"),
    ],
)
def test_what_could_be_another_s_is_refused_and_left_as_it_is(tmp_path, make, says):
    path = tmp_path / "wire.jsonl"
    make(path)
    with pytest.raises(accord.AccordError) as refused:
        trace.TraceFile(path)
    assert str(refused.value) == f"cannot record in {path}: {says}"
    assert not (tmp_path / "nowhere").exists()
    for file in (tmp_path / "victim", path):
        if file.is_file():
            assert file.read_text() == "precious"


@pytest.mark.parametrize("secrets", [False, True])
async def test_secrets_are_masked_in_the_trace_and_not_on_the_wire(tmp_path, secrets):
    agent, seen = echo(), []

    @agent.on_session
    def opened(session):
        seen.extend(session.mcp_servers)

    path = tmp_path / "wire.jsonl"
    recording = trace.TraceFile(path, secrets=secrets)
    async with accord.connect(agent, trace=recording) as remote:
        session = await remote.new_session(tmp_path, mcp_servers=SERVERS)
        await session.prompt("hello")
    recording.close()
    assert [server.env for server in seen] == [SERVERS[0].env]
    assert (SECRET in path.read_text()) == secrets
    header = json.loads(path.read_text().splitlines()[0])
    assert header.get("masked", False) != secrets
    methods = [event.message.method for event in trace.read(path) if hasattr(event.message, "method")]
    assert methods[:3] == ["initialize", "session/new", "session/prompt"]


@needs_full
async def test_a_turn_goes_on_when_its_trace_cannot_be_written(tmp_path, caplog):
    recording = trace.TraceFile(FULL)
    async with accord.connect(echo(), trace=recording) as remote:
        session = await remote.new_session(tmp_path)
        assert (await session.prompt("hello")).text == "you said hello"
    recording.close()
    assert recording.problem.strerror == "No space left on device"
    assert caplog.text.count("cannot write /dev/full: No space left on device; the recording has ended") == 1
    async with accord.connect(echo(), trace=FULL) as remote:
        assert await remote.new_session(tmp_path)


def test_urls_in_a_trace_s_header_and_notes_lose_their_secrets():
    written = io.BytesIO()
    recording = trace.TraceFile(written, peer=f"https://ada:{SECRET}@agents.example/acp?token={SECRET}")
    recording(trace.TraceEvent(0.0, "in", note=f"not JSON: see https://{SECRET}@e.example"))
    text = written.getvalue().decode()
    assert text.count("https://***@") == 2
    assert SECRET not in text


async def test_a_trace_that_ends_in_the_middle_reads_back_up_to_there(tmp_path):
    path = tmp_path / "wire.jsonl"
    with path.open("wb") as file:
        full = Small(file, 1_500)
        recording = trace.TraceFile(full)
        async with accord.connect(echo(), trace=recording) as remote:
            session = await remote.new_session(tmp_path)
            assert (await session.prompt("hello " * 500)).stop_reason == "end_turn"
    assert recording.problem is not None
    assert full.written <= 1_500
    assert next(trace.read(path)).message.method == "initialize"


class Small:
    """A file on a disk with so much room."""

    def __init__(self, file, room):
        self.file, self.room, self.written = file, room, 0

    def write(self, data):
        part = data[: self.room - self.written]
        self.file.write(part)
        self.written += len(part)
        if part != data:
            raise OSError(28, "No space left on device")

    def flush(self):
        self.file.flush()


def run(folder, *options):
    command = [sys.executable, "-m", "accord", "run", "Say hello", *options]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd=folder)


@needs_full
def test_accord_run_says_that_its_trace_is_not_complete_and_ends_as_its_turn_did(tmp_path):
    done = run(tmp_path, "--quiet", "--trace", FULL)
    assert done.stderr == "accord run: --trace /dev/full is incomplete: No space left on device\n"
    assert done.returncode == 0
    assert done.stdout


@posix
def test_accord_run_refuses_a_trace_that_is_a_link_and_starts_nothing(tmp_path):
    linked(tmp_path / "wire")
    done = run(tmp_path, "--trace", "wire")
    assert done.stderr == "accord run: --trace: cannot record in wire: it is a symbolic link; name the file itself\n"
    assert (done.returncode, done.stdout) == (2, "")
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("options", [(), ("--trace-secrets",)])
def test_accord_run_masks_secrets_unless_it_is_told_not_to(tmp_path, options):
    servers = {"mcpServers": {"m": {"command": sys.executable, "args": ["-c", ""], "env": {"API_KEY": SECRET}}}}
    (tmp_path / "mcp.json").write_text(json.dumps(servers))
    run(tmp_path, "--trace", "wire", "--mcp", "mcp.json", *options)
    assert (SECRET in (tmp_path / "wire").read_text()) == bool(options)
