"""The limits themselves, and the ways to keep them as far as they are pure."""

from __future__ import annotations

import pytest

from accord.confinement import cgroup
from accord.confinement.cgroup import needed, settings
from accord.confinement.container import Container, command_in_container
from accord.confinement.process_limits import ProcessLimits


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (5 << 20, 5 << 20),
        ("2G", 2 << 30),
        ("512m", 512 << 20),
        ("1 GiB", 1 << 30),
        ("1073741824", 1 << 30),
        ("2T", 2 << 40),
    ],
)
def test_memory_is_a_number_or_text(given, number):
    assert ProcessLimits(memory=given).memory == number


@pytest.mark.parametrize("given", ["", "much", "1.5G", "-1", "2Q", "0", "1000K", 0, -5])
def test_other_memory_is_refused(given):
    with pytest.raises(ValueError, match="memory must be"):
        ProcessLimits(memory=given)


@pytest.mark.parametrize("given", [0, -1, 0.001, float("nan"), float("inf")])
def test_processors_are_a_positive_number(given):
    with pytest.raises(ValueError, match="cpus must be"):
        ProcessLimits(cpus=given)


@pytest.mark.parametrize("given", [0, -1])
def test_tasks_are_a_positive_number(given):
    with pytest.raises(ValueError, match="tasks must be"):
        ProcessLimits(tasks=given)


def test_limits_are_true_if_there_is_one():
    assert not ProcessLimits()
    assert ProcessLimits(memory="1G")
    assert ProcessLimits(cpus=0.5)
    assert ProcessLimits(tasks=1)


def test_a_control_group_gets_what_is_limited_and_no_more():
    assert settings(ProcessLimits()) == {}
    assert settings(ProcessLimits(tasks=7)) == {"pids.max": "7"}
    assert settings(ProcessLimits(cpus=0.01)) == {"cpu.max": "1000 100000"}
    assert needed(ProcessLimits(memory="1G", cpus=1, tasks=2)) == {"memory": "memory", "cpu": "cpus", "pids": "tasks"}


def test_a_scope_gets_what_is_limited():
    assert cgroup.properties(ProcessLimits()) == []
    assert cgroup.properties(ProcessLimits(cpus=0.001 * 10)) == ["CPUQuota=1%"]
    command = cgroup.command_in_scope("a.scope", ProcessLimits(memory="1M"), ["x", "--", "y"], is_root=True)
    assert command[:3] == ["systemd-run", "--scope", "--quiet"]
    assert command[-4:] == ["--", "x", "--", "y"]


def test_a_container_is_told_names_of_variables_and_never_their_values():
    container = Container("image", folders=["/work/a b"], network="none")
    limits = ProcessLimits(memory="1G", cpus=1.5, tasks=3)
    command = command_in_container("docker", "name", container, limits, ["agent", "--acp"], ["KEY", "OWNER"])
    assert command[:6] == ["docker", "run", "--name", "name", "-i", "--init"]
    assert command[-7:] == ["--env", "KEY", "--env", "OWNER", "image", "agent", "--acp"]
    assert {"--memory=1073741824", "--memory-swap=1073741824", "--cpus=1.5", "--pids-limit=3"} <= set(command)
    assert "/work/a b:/work/a b" in command
    assert "--network=none" in command


def test_where_the_file_system_of_control_groups_is():
    version_1 = "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
    version_2 = "42 31 0:39 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"
    assert cgroup.mounted(version_1) is None
    found = cgroup.mounted(f"{version_1}\n{version_2}")
    assert found is not None
    assert found.as_posix() == "/sys/fs/cgroup/unified"
