"""Runs the programs that install packages, such as npm: quiet while it works, and its own words if it fails.

They are started as agents are: as the leader of a process group, or on Windows in a job, and with arguments that the
batch file `npm.cmd` reads as they are. So what they start ends with them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from accord import ConnectionClosed
from accord.errors import last_lines
from accord.transports.group import kill_group
from accord.transports.launch import environment, launch
from accord_tools.registry.errors import InstallError
from accord_tools.registry.progress import Progress

LOG = "install.log"
SHOWN = 25
"""Lines of the log that a failure shows."""
BEAT = 0.2
"""Seconds between two looks at the program."""


def run_tool(words: Sequence[str], folder: Path, progress: Progress, env: Mapping[str, str] | None = None) -> str:
    """Run a program in this folder, and return what it wrote. Raises InstallError with its last lines if it fails."""
    log = folder / LOG
    with log.open("ab") as file:
        begins = file.tell()
        process = _started(words, folder, file.fileno(), env)
        try:
            _wait(process, progress)
        except BaseException:  # for instance because the user pressed Ctrl-C
            kill_group(process)
            process.wait()
            raise
    written = _text(log, begins)
    if process.returncode != 0:
        name = Path(words[0]).stem
        raise InstallError(f"{name} failed with exit code {process.returncode}", "\n".join(last_lines(written, SHOWN)))
    return written


def _started(words: Sequence[str], folder: Path, output: int, env: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        return launch(words, (null, output, output), cwd=folder, env=environment(env))
    except ConnectionClosed as error:
        raise InstallError(str(error)) from None
    finally:
        os.close(null)


def _wait(process: subprocess.Popen[bytes], progress: Progress) -> None:
    while True:
        try:
            process.wait(BEAT)
        except subprocess.TimeoutExpired:
            progress.waiting()
        else:
            return


def _text(log: Path, begins: int) -> str:
    with log.open("rb") as file:
        file.seek(begins)
        return file.read(1_000_000).decode(errors="replace")


def chosen_program(package: str, wanted: str | None, usual: str, known: Sequence[str]) -> str:
    """The program of a package that starts its agent: the one that is asked for, the usual one, or the only one.

    Raises InstallError that lists what there is.
    """
    if wanted is not None:
        if wanted in known:
            return wanted
        raise InstallError(f"{package} has no program {wanted!r}; it has {', '.join(sorted(known)) or 'none'}")
    if usual in known or len(known) == 1:
        return usual if usual in known else known[0]
    if not known:
        raise InstallError(f"{package} has no program, so it cannot be an agent")
    raise InstallError(f"{package} has several programs, and its entry names none of them: {', '.join(sorted(known))}")
