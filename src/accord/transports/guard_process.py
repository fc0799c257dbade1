"""The guard's own program: waits at a pipe, and ends the groups it was told of when that pipe closes too early.

Run as a file by `python -I -S`, and imports next to nothing, so that it costs a few milliseconds. One line a message:

    expect KEY INODE         a process is being started whose standard input or output is the pipe of this number
    group KEY PGID BIRTH     it has started, at this time, and leads this group
    forget KEY               it has ended, with its group

When the pipe closes and nothing is left to guard, all is well and the guard ends. Else whoever held the other end was
killed: the groups are asked to end, and killed a moment later.
"""

# ruff: noqa: PTH112, PTH115, PTH123, PTH208
# (importing pathlib takes longer than all the rest)

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TERMINATE, KILL = 15, 9  # the same everywhere, and `signal` is as slow to import

MOMENT = 1.0
PAUSE = 0.02


def main() -> None:
    groups, expected = listen()
    end(groups, expected)


def listen() -> tuple[set[int], set[int]]:
    """The groups that are left when the pipe closes, and the pipes of those whose group is not known yet."""
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
    rest = b""
    while chunk := os.read(0, 65536):
        *complete, rest = (rest + chunk).split(b"\n")
        yield from complete


def end(groups: set[int], expected: set[int]) -> None:
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
    """Whether there was anybody to hear it."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def birth_of(pid: int) -> int:
    """When a process started, in the kernel's ticks; 0 where that cannot be known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command stands second, in parentheses, and may itself hold parentheses and blanks.
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def recycled(group: int, birth: int) -> bool:
    """Whether the number now leads another group. If nobody has it, the group's other members still keep it ours."""
    return birth_of(group) not in (0, birth)


def leaders_at(inode: int) -> set[int]:
    """Who has this pipe for its input or output and heads a group: a process whose parent died before it could tell."""
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
