"""Starts a program of Windows in a job of its own, and asks it to end.

A program that shares our console is asked by Ctrl-Break, the only event that reaches a process group of its own. A
program that we started without a console window, because we have none ourselves, cannot be asked: after its input was
closed and its time is over, its job is ended.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from accord.windows.command_lines import command_line, find_program
from accord.windows.jobs import Job

if sys.platform == "win32":
    from accord.windows.kernel32 import kernel

    _SUSPENDED = 0x4

    class ContainedProcess(subprocess.Popen[bytes]):
        """A process in a job of its own, with all that it starts."""

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
