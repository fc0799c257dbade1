"""The program of the guard process: reads a pipe and ends the groups it knows if the pipe closes too early.

It runs as a file by `python -I -S` and imports almost nothing, so it starts in a few milliseconds. Each line is a
message:

    expect KEY INODE         a process is about to start; the pipe with this inode is its standard input or output
    group KEY PGID BIRTH     the process has started at this time and leads this group
    forget KEY               the process has ended with its group

If the pipe closes and no group is left, the guard ends. If groups are left, the process at the other end was killed:
the guard sends them SIGTERM, and SIGKILL a moment later.
"""

# ruff: noqa: PTH112, PTH115, PTH123, PTH208
# (importing pathlib takes longer than everything else)

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TERMINATE, KILL = 15, 9  # the numbers of POSIX; importing `signal` is as slow as the rest

MOMENT = 1.0
"""Seconds between SIGTERM and SIGKILL."""

PAUSE = 0.02
"""Seconds between two checks of the groups."""


def main() -> None:
    """Read messages until the pipe closes, then end the remaining groups."""
    groups, expected = listen()
    end(groups, expected)


def listen() -> tuple[set[int], set[int]]:
    """Return the groups that remain when the pipe closes, and the pipes of processes whose group is not known yet."""
    expected: dict[bytes, int] = {}
    groups: dict[bytes, tuple[int, int]] = {}
    for line in lines():
        match line.split():
            case [b"expect", key, inode]:
                expected[key] = int(inode)
            case [b"group", key, group, birth]:
                groups[key] = int(group), int(birth)
                expected.pop(key, None)
            case [b"forget", key]:
                groups.pop(key, None)
                expected.pop(key, None)
            case _:
                pass
    return {group for group, birth in groups.values() if not recycled(group, birth)}, set(expected.values())


def lines() -> Iterator[bytes]:
    """The lines of standard input."""
    rest = b""
    while chunk := os.read(0, 65536):
        *complete, rest = (rest + chunk).split(b"\n")
        yield from complete


def end(groups: set[int], expected: set[int]) -> None:
    """End these groups, and those whose leaders have one of the expected pipes."""
    asked: set[int] = set()
    deadline = time.monotonic() + MOMENT
    while (groups or expected) and time.monotonic() < deadline:
        for inode in tuple(expected):
            if found := leaders_at(inode):
                groups |= found
                expected.discard(inode)
        for group in groups - asked:
            signal(group, TERMINATE)
            asked.add(group)
        time.sleep(PAUSE)
        groups = {group for group in groups if signal(group, 0)}
    for group in groups:
        signal(group, KILL)


def signal(group: int, number: int) -> bool:
    """Send a signal to a group; returns whether the group exists."""
    assert sys.platform != "win32"
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def birth_of(pid: int) -> int:
    """The start time of a process in the kernel's clock ticks; 0 if unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is the command in parentheses; it may contain parentheses and spaces.
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def recycled(group: int, birth: int) -> bool:
    """Whether another process has the leader's number. If no process has it, the group may still have members."""
    return birth_of(group) not in (0, birth)


def leaders_at(inode: int) -> set[int]:
    """Return the group leaders whose standard input or output is this pipe: their parent died before it sent
    `group`.
    """
    assert sys.platform != "win32"
    pipe = f"pipe:[{inode}]"
    found: set[int] = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        try:
            streams = {os.readlink(f"/proc/{name}/fd/{fd}") for fd in (0, 1)}
            if pipe in streams and os.getpgid(int(name)) == int(name):
                found.add(int(name))
        except (OSError, ValueError):
            continue
    return found


if __name__ == "__main__":
    main()
