"""Starting an agent's program, and saying in one line why it could not be started."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from accord.errors import ConnectionClosed

if TYPE_CHECKING:
    from pathlib import Path

Environment = Mapping[str, str | None]
"""Variables to set, or with None to leave out."""

Inherit = bool | Iterable[str]
"""What of our own environment the agent gets: all of it, nothing, or these names."""


def environment(env: Environment | None = None, inherit: Inherit = True) -> dict[str, str]:
    """The agent's environment: what it inherits, changed by `env`.

    >>> environment({"LANG": "C", "EDITOR": None}, inherit=["EDITOR"])
    {'LANG': 'C'}
    """
    if isinstance(inherit, bool):
        inherited = dict(os.environ) if inherit else {}
    else:
        inherited = {name: os.environ[name] for name in inherit if name in os.environ}
    wanted = {**inherited, **(env or {})}
    return {name: value for name, value in wanted.items() if value is not None}


class Pipes:
    """The three standard streams of a process to be started: its ends, and ours, which are closed unless kept."""

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
        """Our ends (its stdin, stdout, stderr), now in the caller's care."""
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
    """Start `command` at the head of a session of its own; raises ConnectionClosed when that is not possible."""
    stdin, stdout, stderr = streams
    try:
        return subprocess.Popen(
            _program(command, env),
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            # A session and not only a group: in the background of our terminal, an agent that reads there is stopped.
            start_new_session=True,  # ignored on Windows, as are the flags elsewhere
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
    except (OSError, ValueError) as error:
        raise ConnectionClosed(
            "died_at_start", f"cannot start {command[0]}: {_why(error, command[0], cwd, env)}"
        ) from error


def _program(command: Sequence[str], env: dict[str, str]) -> list[str]:
    if sys.platform == "win32":
        # CreateProcess finds programs only; npx and its like are .cmd files, which PATHEXT names.
        import shutil

        return [shutil.which(command[0], path=env.get("PATH")) or command[0], *command[1:]]
    return list(command)


def _why(error: OSError | ValueError, program: str, cwd: str | Path | None, env: dict[str, str]) -> str:
    import shutil  # only for those who need to know: with it come four ways to compress
    from pathlib import Path

    if isinstance(error, ValueError):  # a zero byte in an argument, or a name with `=` in the environment
        return str(error)
    if cwd is not None and not Path(cwd).is_dir():
        return f"its working directory {cwd} does not exist or is not a directory"
    is_path = os.sep in program
    path = Path(cwd or ".", program)
    if is_path and path.is_dir():
        return "it is a directory"
    if error.errno == errno.ENOENT:
        if path.exists() if is_path else shutil.which(program, path=env.get("PATH", os.defpath)):
            return "the interpreter that its first line names does not exist"
        return "no such file" if is_path else "command not found; is it installed, and its directory on PATH?"
    return _HINTS.get(error.errno or 0, error.strerror or str(error))


_HINTS = {
    errno.EACCES: "permission denied; is it executable (chmod +x)?",
    errno.ENOEXEC: "not a program this machine can run; does a script lack its #! line?",
    errno.E2BIG: "its arguments and environment are too long",
}
