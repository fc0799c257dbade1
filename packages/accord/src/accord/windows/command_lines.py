"""Finds a program on Windows, and writes the one line of text that a Windows process gets instead of arguments. PURE.

The problem: each program splits its command line itself. Most do it as the C library does, which
`subprocess.list2cmdline` writes for. But `cmd.exe` has rules of its own, and it also reads the lines of batch files,
such as the `.cmd` files of `npx` and of every npm program. Quoted for the C library, the argument `"&calc` starts a
second program there, and so do quotes that `%VARIABLES%` bring in.

The rule: each kind of program gets its own quoting. For a batch file, every argument that is not plain is quoted, a
quote is doubled, and each `%` is followed by a substring of a variable that is empty, so that no variable's name is
complete. A line break cannot be written at all, so such an argument is refused.

A program is never searched in the current folder, as Windows would do: that folder may hold a foreign project.
"""

from __future__ import annotations

import ntpath
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence

STARTED = (".com", ".exe", ".bat", ".cmd")
"""Endings of the files that a process can be started from."""

BATCH = (".bat", ".cmd")

_PLAIN = re.compile(r"[A-Za-z0-9_#$*+\-./:?@\\]+")
"""Arguments that neither `cmd.exe` nor the C library reads in a special way."""

_UNWRITABLE = re.compile(r"[\0\r\n]")

_LINE_SWITCHES = ("/c", "/k")


def find_program(
    name: str, environment: Mapping[str, str], folder: str, is_file: Callable[[str], bool] = ntpath.isfile
) -> str | None:
    """The file of a program: by its path, relative to `folder`, or by its name on PATH; None if it is not found.

    `environment` has its names in upper case.
    """
    endings = [ending for ending in environment.get("PATHEXT", "").lower().split(";") if ending in STARTED]
    for path in _places(name, environment.get("PATH", ""), folder):
        for candidate in _spellings(path, endings or STARTED):
            if is_file(candidate):
                return candidate
    return None


def _places(name: str, path: str, folder: str) -> Iterator[str]:
    if ntpath.dirname(name) or ntpath.splitdrive(name)[0]:
        yield ntpath.normpath(ntpath.join(folder, name))
        return
    for entry in path.split(";"):
        place = entry.strip('"')
        if ntpath.splitdrive(place)[0] and ntpath.isabs(place):  # a relative entry would be the current folder
            yield ntpath.join(place, name)


def _spellings(path: str, endings: Sequence[str]) -> Iterator[str]:
    if path.lower().endswith(STARTED):
        yield path
    for ending in endings:
        yield path + ending


def command_line(program: str, arguments: Sequence[str], shell: str) -> tuple[str, str]:
    """The file to start and its command line. `shell` is the path of `cmd.exe`, which reads batch files.

    Raises ValueError for an argument that a batch file cannot be given.
    """
    if program.lower().endswith(BATCH):
        words = [_quoted(program), *map(batch_argument, arguments)]
        return shell, f'"{shell}" /e:ON /v:OFF /d /s /c "{" ".join(words)}"'
    if ntpath.basename(program).lower() == "cmd.exe":
        return program, _shell_line(program, arguments)
    return program, subprocess.list2cmdline([program, *arguments])


def batch_argument(argument: str) -> str:
    """An argument as a batch file has to be given it; raises ValueError if that is not possible."""
    if _UNWRITABLE.search(argument):
        raise ValueError(
            "a batch file (.bat or .cmd) cannot be given an argument with a line break or a null byte: "
            f"{ascii(argument)[:200]}"
        )
    if _PLAIN.fullmatch(argument) and not argument.endswith("\\"):
        return argument
    return _quoted(argument)


def _quoted(argument: str) -> str:
    # The program that the batch file starts reads the line as the C library does: there, backslashes before a quote
    # are doubled. `cmd.exe` itself counts quotes only, and a doubled one leaves it inside of the quoted text.
    doubled = re.sub(r'(\\*)"', lambda found: found[1] * 2 + '""', argument)
    doubled = re.sub(r"(\\+)$", lambda found: found[1] * 2, doubled)
    return '"' + doubled.replace("%", "%%cd:~,%") + '"'


def _shell_line(program: str, arguments: Sequence[str]) -> str:
    """The line of `cmd.exe`: a single argument after `/c` is a line in its own language, and stays as it is."""
    at = next((at for at, word in enumerate(arguments) if word.lower() in _LINE_SWITCHES), None)
    if at is None or at + 1 == len(arguments):
        return subprocess.list2cmdline([program, *arguments])
    switches, words = [word for word in arguments[:at] if word.lower() != "/s"], arguments[at + 1 :]
    line = words[0] if len(words) == 1 else subprocess.list2cmdline(words)
    # With /s, the first and the last quote are removed and the rest is kept, whatever it is.
    return f'{subprocess.list2cmdline([program, *switches])} /s {arguments[at]} "{line}"'
