"""Finds the file of a program by its name, as `launch` finds it when it starts the program.

`shutil.which` is right on POSIX. On Windows it searches the current folder before PATH, and that folder may hold a
foreign project with a file `npm.cmd` in it.
"""

from __future__ import annotations

import os
import shutil
import sys


def program_file(name: str, path: str | None = None) -> str | None:
    """The file of this program: by its path, or by its name on `path` (by default our PATH); None if there is none."""
    if sys.platform == "win32":
        return _on_windows(name, path)
    return shutil.which(name, path=path)


def _on_windows(name: str, path: str | None) -> str | None:
    from accord.windows.command_lines import find_program
    from accord.windows.environments import merged

    environment = merged(os.environ, {} if path is None else {"PATH": path}, os.environ)
    return find_program(name, environment, os.getcwd())  # noqa: PTH109
