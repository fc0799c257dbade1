"""Control groups of the kernel."""

from __future__ import annotations

import asyncio
import sys

import pytest

from accord.confinement import cgroup
from accord.confinement.cgroup import ControlGroup, confinement_for
from accord.confinement.process_limits import ProcessLimits
from accord.errors import AccordError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has control groups")

ESCAPES = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        print(os.getpid(), flush=True)
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
os.wait()
sys.stdin.read()
"""
"""Starts a process that leaves the group of processes, and has nothing of our environment."""


async def test_the_end_of_a_group_is_the_end_of_everything_in_it(kernel_group):
    group = ControlGroup(kernel_group / "agent")
    group.make({})
    moved = ["/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"', str(group.members), sys.executable, "-c", ESCAPES]
    process = await asyncio.create_subprocess_exec(
        *moved, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    escaped = int(await process.stdout.readline())
    assert {str(process.pid), str(escaped)} <= set(group.members.read_text().split())
    await group.remove()
    assert not (kernel_group / "agent").exists()
    async with asyncio.timeout(30):
        assert await process.stdout.read() == b""  # all who could write have ended, the escaped one too
        assert await process.wait() == -9


async def test_a_group_without_processes_is_removed(kernel_group):
    group = ControlGroup(kernel_group / "agent")
    group.make({})
    await group.remove()
    assert list(kernel_group.glob("agent")) == []
    await group.remove()  # once more does no harm


def test_a_group_that_cannot_be_made_says_why(kernel_group):
    with pytest.raises(AccordError, match=r"cannot limit the agent: control group .*: No such file or directory"):
        ControlGroup(kernel_group / "missing" / "agent").make({})


def test_a_group_that_lacks_a_controller_is_refused(kernel_group, monkeypatch):
    monkeypatch.setenv(cgroup.VARIABLE, str(kernel_group))
    if set((kernel_group / "cgroup.controllers").read_text().split()) & {"memory", "pids"}:
        pytest.skip("this kernel gives these controllers to control groups of version 2")
    with pytest.raises(AccordError, match=r"lacks the controllers memory, pids; and systemd .*Delegate=yes"):
        confinement_for(ProcessLimits(memory="1G", tasks=5))


def test_a_folder_that_is_no_control_group_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(cgroup.VARIABLE, str(tmp_path))
    assert cgroup.cgroup_problem(ProcessLimits(tasks=5)) == f"{tmp_path} is not a control group of version 2"


async def test_the_kernel_keeps_the_number_of_processes(kernel_group, monkeypatch):
    if "pids" not in (kernel_group / "cgroup.controllers").read_text().split():
        pytest.skip("this kernel gives the controller pids to control groups of version 1")
    monkeypatch.setenv(cgroup.VARIABLE, str(kernel_group))
    confined = confinement_for(ProcessLimits(tasks=3)).confine(
        ["/bin/sh", "-c", "sleep 9 & sleep 9 & sleep 9 & wait"], {}
    )
    process = await asyncio.create_subprocess_exec(*confined.command, stderr=asyncio.subprocess.PIPE)
    _, complaint = await process.communicate()
    assert b"ork" in complaint
    assert await confined.limit_hit() == "the agent could not start a process: it may have 3 processes and threads"
    await confined.close()
    assert list(kernel_group.glob("accord-*")) == []


async def test_groups_of_a_server_that_has_ended_are_removed(kernel_group, monkeypatch):
    if "pids" not in (kernel_group / "cgroup.controllers").read_text().split():
        pytest.skip("this kernel gives the controller pids to control groups of version 1")
    ended_server = await asyncio.create_subprocess_exec("/bin/true")
    await ended_server.wait()
    left, kept = kernel_group / f"accord-{ended_server.pid}-1", kernel_group / "accord-1-1"
    left.mkdir()
    kept.mkdir()
    monkeypatch.setenv(cgroup.VARIABLE, str(kernel_group))
    confinement_for(ProcessLimits(tasks=3)).sweep()
    assert (left.exists(), kept.exists()) == (False, True)
