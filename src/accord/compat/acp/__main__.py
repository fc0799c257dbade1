"""Runs a program of the official Python SDK on our engine: `python -m accord.compat.acp PROGRAM [ARGUMENT ...]`.

PROGRAM is a file, or `-m MODULE`. In that process `import acp` gives `accord.compat.acp`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from accord.compat.acp.aliases import install

USAGE = "usage: python -m accord.compat.acp (FILE | -m MODULE) [ARGUMENT ...]"


def main(arguments: list[str]) -> None:
    """Run the program that these arguments name, with the rest as its own arguments."""
    is_module = arguments[:1] == ["-m"]
    program = arguments[int(is_module) :]
    if not program or program[0] in ("-h", "--help"):
        sys.exit(f"{USAGE}\n\n{__doc__}")
    if not is_module and not Path(program[0]).is_file():
        sys.exit(f"{program[0]} is not a file; {USAGE}")
    install()
    sys.argv = program
    if is_module:
        sys.path.insert(0, "")
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(program[0]).resolve().parent))
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
