"""Agents in real containers, served over HTTP."""

from __future__ import annotations

import asyncio
import os
import subprocess

import pytest

import accord
from accord.confinement.container import Containers
from accord.errors import AccordError
from accord.http import CommandHost, Container, ProcessLimits, serving

pytestmark = pytest.mark.timeout(120)

IMAGE = Container("accord-test", engine="podman", network="none")

AGENT = """
read hello
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read opening
id=${opening#*\\"id\\":}
echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":${id%%,*},\\"result\\":{\\"sessionId\\":\\"$ACCORD_OWNER$SECRET\\"}}"
read prompt
exec tail /dev/zero
"""
"""Opens a session, and eats memory once it is asked for anything."""


def names(podman):
    asked = ["podman", "ps", "--all", "--format", "{{.Names}}"]
    return subprocess.run(
        asked, env={**os.environ, **podman}, capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.fixture
def in_podman(podman, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # podman's monitor writes a file there when memory has run out
    for name, value in podman.items():
        monkeypatch.setenv(name, value)
    return podman


async def test_an_agent_in_a_container_runs_out_of_memory_and_the_client_learns_it(in_podman):
    host = CommandHost(
        ["/bin/sh", "-c", AGENT],
        env={"SECRET": "s3cret"},
        limits=ProcessLimits(memory="48M", cpus=1, tasks=20),
        container=IMAGE,
    )
    async with serving(host) as server, accord.connect(server.url) as remote:
        session = await remote.new_session("/")
        assert session.id == "s3cret"
        assert len(names(in_podman)) == 1
        with pytest.raises(accord.ConnectionClosed, match=r"ran out of memory: it may use 48 MiB"):
            await session.prompt("Take all that there is")
    assert names(in_podman) == []


async def test_a_container_ends_with_its_connection(in_podman):
    host = CommandHost(["/bin/sh", "-c", AGENT], container=IMAGE)
    async with serving(host) as server, accord.connect(server.url):
        assert len(names(in_podman)) == 1
    assert names(in_podman) == []


async def test_a_folder_is_lent_under_the_same_path(in_podman, tmp_path):
    script = f"{AGENT.replace('read opening', f'touch {tmp_path}/seen; read opening')}"
    host = CommandHost(["/bin/sh", "-c", script], container=Container("accord-test", [tmp_path], network="none"))
    async with serving(host) as server, accord.connect(server.url) as remote:
        await remote.new_session("/")
    assert (tmp_path / "seen").exists()


async def test_container_of_a_server_that_was_killed_are_removed(in_podman):
    killed = Containers(IMAGE, ProcessLimits()).confine(["/bin/sh", "-c", "echo up; sleep 600"], {})
    name = killed.command[killed.command.index("--name") + 1]
    *before, birth, number = name.split("-")
    old = "-".join([*before, str(int(birth) + 1), number])
    words = [old if word == name else word for word in killed.command]
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    running = await asyncio.create_subprocess_exec(*words, stdin=nothing, stdout=pipe)
    assert running.stdout is not None
    assert await running.stdout.readline() == b"up\n"
    Containers(IMAGE, ProcessLimits()).sweep()
    assert await running.wait() != 0
    assert names(in_podman) == []


def test_a_folder_that_cannot_be_lent_is_refused(in_podman, tmp_path):
    for folder in ("relative", str(tmp_path / "missing"), f"{tmp_path}:/etc"):
        with pytest.raises(AccordError, match="a folder for containers must be an absolute path"):
            CommandHost(["agent"], container=Container("image", [folder]))


def test_an_engine_that_is_missing_is_told():
    with pytest.raises(AccordError, match="program not found: no-such-engine, to run agents in containers"):
        CommandHost(["agent"], container=Container("image", engine="no-such-engine"))


@pytest.mark.parametrize(("words", "shown"), [("no pods\nno cgroups", "no cgroups"), ("", "returned non-zero exit")])
def test_an_engine_that_fails_is_reported_by_its_last_line(tmp_path, words, shown):
    engine = tmp_path / "podman"
    engine.write_text(f"#!/bin/sh\necho -n '{words}' >&2\nexit 3\n")
    engine.chmod(0o755)
    containers = Containers(Container("image", engine=str(engine)), ProcessLimits())
    with pytest.raises(AccordError, match=f"podman cannot be used: .*{shown}"):
        containers.sweep()
