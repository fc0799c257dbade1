"""Finds and starts programs, and explains in one line why a program could not be started.

`shutil.which` is right on POSIX. On Windows it searches the current folder before PATH, and that folder may belong to
an untrusted project with a file `npm.cmd` in it. So `program_file` finds a program as `launch` does when it starts it.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from accord.errors import ConnectionClosed

if TYPE_CHECKING:
    from pathlib import Path

Environment = Mapping[str, str | None]
"""Variables to set; None removes a variable."""

Inherit = bool | Iterable[str]
"""Variables of our own environment to pass on: all (True), none (False), or these names."""


def environment(env: Environment | None = None, inherit: Inherit = True) -> dict[str, str]:
    """Return the environment of a new process: the inherited variables, changed by `env`.

    >>> environment({"LANG": "C", "EDITOR": None}, inherit=["EDITOR"])
    {'LANG': 'C'}
    """
    if isinstance(inherit, bool):
        inherited = dict(os.environ) if inherit else {}
    else:
        inherited = {name: os.environ[name] for name in inherit if name in os.environ}
    if sys.platform == "win32":
        from accord.windows.processes import merged_environment

        return merged_environment(inherited, env or {}, os.environ)
    wanted = {**inherited, **(env or {})}
    return {name: value for name, value in wanted.items() if value is not None}


class Pipes:
    """The pipes for the standard streams of a new process. Both ends are closed on exit; `keep` keeps ours."""

    def __init__(self, program: str) -> None:
        self._open: list[int] = []
        try:
            for _ in range(3):
                self._open += os.pipe()
        except OSError as error:
            self._close()
            raise ConnectionClosed("died_at_start", f"cannot start {program}: {error.strerror}") from error
        in_reads, in_writes, out_reads, out_writes, err_reads, err_writes = self._open
        self.theirs = (in_reads, out_writes, err_writes)
        self._ours = (in_writes, out_reads, err_reads)

    def keep(self) -> tuple[int, int, int]:
        """Return our ends (of its stdin, stdout, stderr), which the caller must close from now on."""
        self._open = list(self.theirs)
        return self._ours

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        for fd in self._open:
            os.close(fd)


def launch(
    command: Sequence[str], streams: tuple[int, int, int], *, cwd: str | Path | None, env: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start `command` as the leader of a new session (on Windows: in a job); raises ConnectionClosed if that fails."""
    try:
        return _started(command, streams, cwd, env)
    except (OSError, ValueError) as error:
        raise ConnectionClosed(
            "died_at_start", f"cannot start {command[0]}: {_why(error, command[0], cwd, env)}"
        ) from error


if sys.platform == "win32":

    def _started(
        command: Sequence[str], streams: tuple[int, int, int], cwd: str | Path | None, env: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        from accord.windows.processes import ContainedProcess

        return ContainedProcess(command, streams, cwd=cwd, env=env)

else:

    def _started(
        command: Sequence[str], streams: tuple[int, int, int], cwd: str | Path | None, env: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        stdin, stdout, stderr = streams
        return subprocess.Popen(
            list(command),
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            # A new session, not only a new group: a background process that reads from our terminal would be stopped.
            start_new_session=True,
        )


def _why(error: OSError | ValueError, program: str, cwd: str | Path | None, env: dict[str, str]) -> str:
    import shutil  # imported late: it is needed only for errors, and imports compression modules
    from pathlib import Path

    if isinstance(error, ValueError):  # a null byte in an argument, or a variable name with `=`
        return str(error)
    if cwd is not None and not Path(cwd).is_dir():
        return f"its working directory {cwd} does not exist or is not a directory"
    is_path = os.sep in program
    path = Path(cwd or ".", program)
    if is_path and path.is_dir():
        return "it is a directory"
    if error.errno == errno.ENOENT:
        if sys.platform == "win32":  # `which` would also look in the current folder, where no program is searched
            return "no such file" if is_path else NOT_FOUND
        if path.exists() if is_path else shutil.which(program, path=env.get("PATH", os.defpath)):
            return "the interpreter that its first line names does not exist"
        return "no such file" if is_path else NOT_FOUND
    return _HINTS.get(error.errno or 0, error.strerror or str(error))


NOT_FOUND = "command not found; is it installed, and its directory on PATH?"

_HINTS = {
    errno.EACCES: "permission denied; is it executable (chmod +x)?",
    errno.ENOEXEC: "not a program this machine can run; does a script lack its #! line?",
    errno.E2BIG: "its arguments and environment are too long",
}


def program_file(name: str, path: str | None = None) -> str | None:
    """Return the file of this program: by its path, or by its name on `path` (by default our PATH); None if there is
    none.
    """
    if sys.platform == "win32":
        return _on_windows(name, path)
    return shutil.which(name, path=path)


def _on_windows(name: str, path: str | None) -> str | None:
    from accord.windows.processes import find_program, merged_environment

    environment = merged_environment(os.environ, {} if path is None else {"PATH": path}, os.environ)
    return find_program(name, environment, os.getcwd())  # noqa: PTH109
