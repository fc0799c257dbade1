"""`--trace` of the commands that speak or forward the protocol: one mechanism for all of them."""

import asyncio
import contextlib
import os
import sys

import pytest

import accord
from accord import trace
from accord.tap import live_taps
from accord.trace.entries import entries
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
