"""Finds files by name, and lines by a pattern, in a project: with ripgrep if it is installed.

A model chooses the pattern, and the files are not trusted. Without ripgrep, `Project` lists and opens the files and RE2
matches; if RE2 is missing too, the pattern is plain text, and the answer states that. A search ends when its caller is
cancelled.

**Patterns.** Python's `re` can take years to match a short pattern (`(a+)+$`), and nothing can stop it meanwhile. So
`re` never gets the pattern of a peer or of a model: RE2 compiles it (`compiled`), which matches in linear time. The
extra `patterns` installs RE2.
"""

from __future__ import annotations

import asyncio
import fnmatch
import functools
import importlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from accord.installation import install_command
from accord.printable import printable
from accord.project.project import Project
from accord.transports.launch import program_file

LONGEST_PATTERN = 1_000
"""Characters that a pattern may have."""
_MEMORY = 128 * 1024


def has_engine() -> bool:
    """Whether RE2 is installed."""
    return _engine() is not None


@functools.lru_cache(maxsize=64)
def compiled(pattern: str) -> Any:
    """Return the compiled pattern; None without RE2, for one that RE2 does not support, and for one that is
    too long.
    """
    engine = _engine()
    if engine is None or len(pattern) > LONGEST_PATTERN:
        return None
    options = engine.Options()
    options.max_mem, options.log_errors, options.never_capture = _MEMORY, False, True
    try:
        return engine.compile(pattern, options)
    except (engine.error, UnicodeEncodeError):
        return None


@functools.cache
def _engine() -> Any:
    try:
        engine = importlib.import_module("re2")
    except ImportError:
        return None
    return engine if hasattr(engine, "Options") else None  # another package has the same name


T = TypeVar("T")

MOST_RESULTS = 300
LARGEST_OUTPUT = 64 * 1024
LARGEST_FILE = 1024 * 1024
"""Bytes of the largest file that is searched without ripgrep."""
LONGEST_LINE = 400
"""Characters of a line that are shown; ten times as many are searched."""
PATIENCE = 60.0
"""Seconds that ripgrep may take."""

_RIPGREP = (
    "--no-config",
    "--no-follow",
    "--no-messages",
    "--color=never",
    "--hidden",
    "--null",
    "--sort=path",
    "--glob=!.git",
)
_RECORD = re.compile(r"([^\0]+)\0([^\n]*)\n?")
"""A line that ripgrep has found, after the name of its file."""


class Found(NamedTuple):
    """The names or lines that were found, one more than `MOST_RESULTS` at most, and how they are to be read."""

    lines: list[str]
    note: str = ""


async def find_files(project: Project, folder: str, names: str) -> Found:
    """Return the files below a folder whose path or name matches this form, such as `*.py`."""
    if program := program_file("rg"):
        listed = (await _ripgrep([program, "--files", *_RIPGREP], project, folder)).split("\0")
        return Found([_shown(name) for name in listed if name and _fits(name, names)])
    return Found(await _in_thread(lambda halt: [_shown(name) for name in _first(_files(project, folder, names, halt))]))


async def find_lines(project: Project, folder: str, pattern: str, names: str) -> Found:
    """Return the lines of files with such names that a regular expression matches, as `path:number:line`.

    Raises ValueError for a pattern that is not valid, or too long.
    """
    if len(pattern) > LONGEST_PATTERN or len(names) > LONGEST_PATTERN:
        raise ValueError(f"a pattern must have at most {LONGEST_PATTERN:,} characters, got {len(pattern):,}")
    if program := program_file("rg"):
        options = ["--line-number", "--no-heading", f"--max-columns={LONGEST_LINE}"]
        wanted = [f"--glob={names}", *_RIPGREP, f"--regexp={pattern}", "."]
        found = await _ripgrep([program, *options, *wanted], project, folder)
        return Found([_shown(f"{name.removeprefix('./')}:{line}") for name, line in _RECORD.findall(found)])
    if not has_engine():
        lines, note = await _lines_in(project, folder, names, lambda text: pattern in text)
        return Found(lines, f"{note}\n{_plain_note()}".lstrip())
    expression, anywhere = compiled(pattern), compiled(f"(?m){pattern}")
    if expression is None:
        raise ValueError(f"this is not a regular expression that RE2 supports: {pattern}")
    matches: Callable[[str], bool] = lambda line: expression.search(line) is not None  # noqa: E731
    may_match: Callable[[str], bool] = matches if anywhere is None else lambda text: anywhere.search(text) is not None
    return await _lines_in(project, folder, names, matches, may_match)


def _plain_note() -> str:
    return (
        "Neither ripgrep nor RE2 is installed, so the pattern was searched as plain text; "
        f"for regular expressions: {install_command('patterns')}"
    )


async def _lines_in(
    project: Project,
    folder: str,
    names: str,
    matches: Callable[[str], bool],
    may_match: Callable[[str], bool] | None = None,
) -> Found:
    def search(halt: threading.Event) -> Found:
        large: list[str] = []
        lines = lines_of_files(project, folder, names, matches, may_match or matches, halt, large.append)
        return Found(list(_first(lines)), _skipped_note(large))

    return await _in_thread(search)


def _skipped_note(large: Sequence[str]) -> str:
    if not large:
        return ""
    named = ", ".join(map(_shown, large[:3])) + (", …" if len(large) > 3 else "")
    files = "1 file was" if len(large) == 1 else f"{len(large):,} files were"
    return f"{files} not searched: larger than {LARGEST_FILE // 1024**2} MB, or not readable ({named})"


def lines_of_files(
    project: Project,
    folder: str,
    names: str,
    matches: Callable[[str], bool],
    may_match: Callable[[str], bool],
    halt: threading.Event,
    skipped: Callable[[str], object] = lambda _: None,
) -> Iterator[str]:
    """Yield matching lines, file by file until `halt` is set; `may_match` decides whether a whole text can have any.

    `skipped` is called with each file that is not searched, because it is too large or cannot be read.
    """
    for name in _files(project, folder, names, halt):
        try:
            data = project.read(f"{folder}/{name}", LARGEST_FILE)
        except (OSError, ValueError):
            skipped(name)
            continue
        text = data.decode("utf-8", "replace")
        if "\0" in text or not may_match(text):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if matches(line[: 10 * LONGEST_LINE]):
                yield _shown(f"{name}:{number}:{line[:LONGEST_LINE]}")


def _files(project: Project, folder: str, names: str, halt: threading.Event) -> Iterator[str]:
    return (name for name in project.walk(folder, stopped=halt.is_set) if _fits(name, names))


def _fits(name: str, names: str) -> bool:
    # `fnmatch` makes an expression of it that never backtracks over a `*`.
    return fnmatch.fnmatch(name, names) or fnmatch.fnmatch(name.rpartition("/")[2], names)


def _first(found: Iterator[str]) -> Iterator[str]:
    for number, one in enumerate(found):
        yield one
        if number == MOST_RESULTS:
            return


def _shown(line: str) -> str:
    """A line for a model: a name with a line break in it must not look like two lines."""
    return printable(os.fsencode(line).decode("utf-8", "replace")).replace("\n", "␊")


async def _in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run this in a thread, which is stopped if we are cancelled."""
    halt = threading.Event()
    try:
        return await asyncio.to_thread(work, halt)
    finally:
        halt.set()


async def _ripgrep(command: list[str], project: Project, folder: str) -> str:
    """Return ripgrep's output, up to a limit; ripgrep is ended then, and when the caller is cancelled."""
    with project.enter(folder) as (path, fd):
        held = f"/proc/self/fd/{fd}"
        running = await asyncio.create_subprocess_exec(
            *command,
            cwd=held if fd is not None and os.path.isdir(held) else path,  # noqa: ASYNC240, PTH112
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    assert running.stdout is not None
    assert running.stderr is not None
    printed = b""
    try:
        async with asyncio.timeout(PATIENCE):
            while len(printed) < LARGEST_OUTPUT and (more := await running.stdout.read(65536)):
                printed += more
            problem = b"" if printed else await running.stderr.read(4096)
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()
    if problem.strip():
        raise ValueError(problem.decode("utf-8", "replace").strip())
    return printed[:LARGEST_OUTPUT].decode("utf-8", "replace")
