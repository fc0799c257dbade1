"""The command that runs a module of Accord with this Python, safe to start in any folder.

`python -m` searches the current folder before the installed packages. An agent starts in the folder of a project, and
a file `json.py` there would run in place of the standard module. So each command has `-P`, which leaves that folder
out.
"""

from __future__ import annotations

import sys


def own_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of Accord with these arguments."""
    return [sys.executable, "-P", "-m", module, *arguments]
