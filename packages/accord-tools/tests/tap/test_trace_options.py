"""`--trace` of the commands that speak or forward the protocol: one mechanism for all of them."""

import asyncio
import contextlib
import os
import sys

import pytest

import accord
from accord import trace
from accord.trace.trace_entries import entries
from accord_tools.tap import live_taps
from tests.waiting import eventually

ACCORD = [sys.executable, "-m", "accord"]


def methods(path):
    found = [it for it in entries(trace.read(path)) if it.kind in ("request", "answer")]
    return [(it.event.direction, it.kind, it.method, it.event.link) for it in found]


@contextlib.asynccontextmanager
async def served(folder, *options):
    """`accord serve` with the demo agent; gives its URL."""
    words = [*ACCORD, "serve", "--port", "0", "--log-format", "none", *options]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, cwd=folder)
    line = await process.stdout.readline()
    try:
        yield line.split()[-1].decode()
    finally:
        process.terminate()
        await process.wait()


async def converse(target, folder):
    async with accord.connect(target) as remote:
        session = await remote.new_session(folder)
        assert (await session.prompt("hello")).stop_reason == "end_turn"


async def test_serve_records_each_connection_as_a_link_of_one_trace(tmp_path):
    async with served(tmp_path, "--trace", "wire.jsonl", "--", *ACCORD, "demo") as url:
        for _ in range(2):
            await converse(url, tmp_path)
        assert [tap.role for tap in live_taps()] == ["agent"]
    assert live_taps() == []
    found = methods(tmp_path / "wire.jsonl")
    for link in (1, 2):
        of_link = [it[:3] for it in found if it[3] == link]
        assert of_link[:2] == [("in", "request", "initialize"), ("out", "answer", "initialize")]
        assert of_link[-1] == ("out", "answer", "session/prompt")
    assert trace.read_header(tmp_path / "wire.jsonl").role == "agent"


async def test_serve_records_an_agent_of_its_own_process(tmp_path):
    async with served(tmp_path, "--trace", "wire.jsonl") as url:
        await converse(url, tmp_path)
    assert methods(tmp_path / "wire.jsonl")[-1] == ("out", "answer", "session/prompt", 1)


async def test_a_bridge_records_both_ways_as_a_tap_does(tmp_path):
    async with served(tmp_path) as url:
        await converse([*ACCORD, "bridge", url, "--trace", str(tmp_path / "wire.jsonl")], tmp_path)
    found = methods(tmp_path / "wire.jsonl")
    assert found[:2] == [("out", "request", "initialize", None), ("in", "answer", "initialize", None)]
    assert trace.read_header(tmp_path / "wire.jsonl").role == "tap"


async def test_a_chain_of_proxies_is_announced_while_it_is_recorded(tmp_path):
    words = [*ACCORD, "conduct", "--trace", str(tmp_path / "wire.jsonl"), f"{sys.executable} -m accord demo"]
    async with accord.connect(words) as remote:
        await remote.new_session(tmp_path)
        assert [(tap.role, tap.trace) for tap in live_taps()] == [("conductor", str(tmp_path / "wire.jsonl"))]
    await eventually(lambda: live_taps() == [])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a full disk")  # noqa: PTH110
@pytest.mark.parametrize("command", ["conduct", "bridge"])
async def test_a_full_disk_does_not_end_what_is_recorded(tmp_path, command):
    async with served(tmp_path) as url:
        where = [url] if command == "bridge" else [f"{sys.executable} -m accord demo"]
        await converse([*ACCORD, command, *where, "--trace", "/dev/full"], tmp_path)


@pytest.mark.parametrize("words", [["serve"], ["bridge", "http://127.0.0.1:1/acp"], ["conduct", "true"], ["run", "hi"]])
async def test_a_file_that_cannot_hold_a_trace_is_refused_at_the_start(tmp_path, words):
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    process = await asyncio.create_subprocess_exec(
        *ACCORD, *words, "--trace", "link", cwd=tmp_path, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 2
    assert b"--trace: cannot record in link: it is a symbolic link; name the file itself" in errors


TALKATIVE = """
import sys
import accord

print("loading the model", file=sys.stderr, flush=True)
agent = accord.Agent("talkative")

@agent.on_prompt
async def answer(turn):
    print(f"working on {turn.text}", file=sys.stderr, flush=True)
    await turn.say("done")

agent.run()
"""


async def test_serve_records_what_the_agents_write_to_standard_error_and_how_they_ended(tmp_path):
    (tmp_path / "talkative.py").write_text(TALKATIVE)
    async with served(tmp_path, "--trace", "wire.jsonl", "--", sys.executable, "talkative.py") as url:
        await converse(url, tmp_path)
    lines = [(it.stderr, it.link, it.direction) for it in trace.read(tmp_path / "wire.jsonl") if it.stderr]
    assert ("loading the model", 1, "out") in lines
    assert ("working on hello", 1, "out") in lines


async def test_serve_records_how_an_agent_ended_by_itself(tmp_path):
    async with served(tmp_path, "--trace", "wire.jsonl", "--", sys.executable, "-c", "raise SystemExit(7)") as url:
        with pytest.raises(accord.AccordError):
            await converse(url, tmp_path)
        await eventually(lambda: any(it.process for it in trace.read(tmp_path / "wire.jsonl")))
    (ended,) = [it.process for it in trace.read(tmp_path / "wire.jsonl") if it.process]
    assert ended == {"event": "exited", "code": 7}


async def test_a_trace_has_several_files_when_it_is_large_and_the_oldest_are_removed(tmp_path):
    limits = ("--trace-max-size", "2K", "--trace-keep", "6K")
    async with served(tmp_path, "--trace", "wire.jsonl", *limits) as url:
        for _ in range(6):
            await converse(url, tmp_path)
        (tap,) = live_taps()
    parts = sorted(tmp_path.glob("wire*.jsonl"), key=lambda path: trace.read_header(path).part)
    assert 1 < len(parts) <= 4
    assert tap.trace == str(parts[-1])
    numbers = [trace.read_header(path).part for path in parts]
    assert numbers == list(range(numbers[-1] - len(parts) + 1, numbers[-1] + 1))
    assert numbers[0] > 1
    assert not (tmp_path / "wire.jsonl").exists()


async def test_a_trace_whose_name_ends_with_gz_is_compressed(tmp_path):
    async with served(tmp_path, "--trace", "wire.jsonl.gz", "--trace-max-size", "2K") as url:
        await converse(url, tmp_path)
    assert {path.suffix for path in tmp_path.glob("wire*")} == {".gz"}
    assert methods(tmp_path / "wire.jsonl.gz")[0] == ("in", "request", "initialize", 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--trace-max-size", "0"], b"--trace-max-size must be a positive number of bytes"),
        (["--trace-max-size", "4K", "--trace-keep", "2K"], b"--trace-keep must be at least --trace-max-size"),
    ],
)
async def test_a_wrong_limit_of_a_trace_is_refused(tmp_path, words, says):
    process = await asyncio.create_subprocess_exec(
        *ACCORD, "serve", "--port", "0", "--trace", "w", *words, cwd=tmp_path, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert (process.returncode, says in errors) == (2, True)
