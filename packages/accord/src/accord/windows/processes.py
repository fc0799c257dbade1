"""Starts a program of Windows in its own job, and asks it to end.

A program that shares our console is asked by Ctrl-Break, the only event that reaches a separate process group. A
program that we started without a console window, because we have none ourselves, cannot be asked: after its input was
closed and its time is over, its job is ended.

**Command lines.** The problem: each program splits its command line itself. Most do it like the C library, for which
`subprocess.list2cmdline` writes. But `cmd.exe` has rules of its own, and it also reads the lines of batch files, such
as the `.cmd` files of `npx` and of every npm program. Quoted for the C library, the argument `"&calc` starts a second
program there, and so do quotes from `%VARIABLES%`.

The rule: each kind of program gets its own quoting. For a batch file, every argument that is not plain is quoted, a
quote is doubled, and each `%` is followed by a substring of a variable that is empty, so that no variable's name is
complete. A line break cannot be written at all, so such an argument is refused.

A program is never searched in the current folder, as Windows would do: that folder may belong to an untrusted project.

**Jobs.** Windows keeps no tree of processes: the children of a wrapper such as `npx` survive it. So each program that
we start is put into a job before it runs its first instruction. Its child processes belong to the job as well and
cannot leave it. The job ends its processes when its last handle closes. Only we hold one, so the kernel ends the job
also when we are killed; no process has to watch us.
"""

from __future__ import annotations

import ntpath
import re
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.windows.kernel32 import Kernel32

STARTED = (".com", ".exe", ".bat", ".cmd")
"""Endings of the files from which a process can be started."""

BATCH = (".bat", ".cmd")

_PLAIN = re.compile(r"[A-Za-z0-9_#$*+\-./:?@\\]+")
"""Arguments that neither `cmd.exe` nor the C library interprets specially."""

_UNWRITABLE = re.compile(r"[\0\r\n]")

_LINE_SWITCHES = ("/c", "/k")


def find_program(
    name: str, environment: Mapping[str, str], folder: str, is_file: Callable[[str], bool] = ntpath.isfile
) -> str | None:
    """Return the file of a program: by its path, relative to `folder`, or by its name on PATH; None if it is not found.

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
    """Return the file to start and its command line. `shell` is the path of `cmd.exe`, which reads batch files.

    Raises ValueError for an argument that a batch file cannot be given.
    """
    if program.lower().endswith(BATCH):
        words = [_quoted(program), *map(batch_argument, arguments)]
        return shell, f'"{shell}" /e:ON /v:OFF /d /s /c "{" ".join(words)}"'
    if ntpath.basename(program).lower() == "cmd.exe":
        return program, _shell_line(program, arguments)
    return program, subprocess.list2cmdline([program, *arguments])


def batch_argument(argument: str) -> str:
    """Return an argument quoted for a batch file; raises ValueError if that is not possible."""
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
    """Return the line of `cmd.exe`: a single argument after `/c` is a line in its own language, and is not changed."""
    at = next((at for at, word in enumerate(arguments) if word.lower() in _LINE_SWITCHES), None)
    if at is None or at + 1 == len(arguments):
        return subprocess.list2cmdline([program, *arguments])
    switches, words = [word for word in arguments[:at] if word.lower() != "/s"], arguments[at + 1 :]
    line = words[0] if len(words) == 1 else subprocess.list2cmdline(words)
    # With /s, the first and the last quote are removed and the rest is kept, whatever it is.
    return f'{subprocess.list2cmdline([program, *switches])} /s {arguments[at]} "{line}"'


ALWAYS = ("SYSTEMROOT",)
"""Variables without which Windows programs fail to load libraries or to open sockets."""


def merged_environment(
    inherited: Mapping[str, str], changes: Mapping[str, str | None], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a new process, with names in upper case, so that `Path` replaces `PATH`.

    `own` is our environment, of which a process gets `ALWAYS`.
    """
    present = {name.upper(): value for name, value in own.items()}
    wanted: dict[str, str | None] = {name: present[name] for name in ALWAYS if name in present}
    for variables in (inherited, changes):
        wanted |= {name.upper(): value for name, value in variables.items()}
    return {name: value for name, value in wanted.items() if value is not None}


class Job:
    """The processes of one program. They end at the latest with this object."""

    def __init__(self, kernel: Kernel32) -> None:
        self._kernel = kernel
        self._handle = kernel.create_job()
        self.close = weakref.finalize(self, kernel.close, self._handle)
        """Close the handle, which ends all processes that are left. Idempotent."""

    def add(self, process_id: int) -> None:
        """Put a suspended process into the job and let it run."""
        self._kernel.add_process(self._handle, process_id)

    def is_empty(self) -> bool:
        """Whether all processes have ended."""
        return not self.close.alive or self._kernel.active_processes(self._handle) == 0

    def terminate(self) -> None:
        """End all processes at once."""
        if self.close.alive:
            self._kernel.terminate_job(self._handle)


if sys.platform == "win32":
    from accord.windows.kernel32 import kernel

    _SUSPENDED = 0x4

    class ContainedProcess(subprocess.Popen[bytes]):
        """A process in its own job, with its child processes."""

        def __init__(
            self,
            command: Sequence[str],
            streams: tuple[int, int, int],
            *,
            cwd: str | Path | None,
            env: Mapping[str, str],
        ) -> None:
            program, line = _command_line(command, cwd, env)
            self._kernel = kernel()
            self.job = Job(self._kernel)
            stdin, stdout, stderr = streams
            flags = subprocess.CREATE_NEW_PROCESS_GROUP | _SUSPENDED
            super().__init__(
                line,
                executable=program,
                cwd=cwd,
                env=env,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                # A console program that finds no console would open a window.
                creationflags=flags if self._kernel.has_console() else flags | subprocess.CREATE_NO_WINDOW,
            )
            try:
                self.job.add(self.pid)
            except OSError:
                self.kill()
                self.wait()
                raise

        def ask_to_end(self) -> None:
            """Send Ctrl-Break to the processes; end them if they cannot be asked."""
            try:
                self._kernel.send_break(self.pid)
            except OSError:
                self.job.terminate()

    def ask_to_end(process: subprocess.Popen[bytes]) -> None:
        """Ask a process that `launch` has started to end, with all that it started."""
        contained(process).ask_to_end()

    def contained(process: subprocess.Popen[bytes]) -> ContainedProcess:
        """The same process as one in a job; `launch` starts no others."""
        assert isinstance(process, ContainedProcess)
        return process

    def _command_line(command: Sequence[str], cwd: str | Path | None, env: Mapping[str, str]) -> tuple[str, str]:
        name, *arguments = command
        program = find_program(name, env, str(Path(cwd or ".").absolute()))
        if program is None:
            raise FileNotFoundError(2, "no such program", name)
        root = env.get("SYSTEMROOT", "C:\\Windows")
        return command_line(program, arguments, f"{root}\\System32\\cmd.exe")
