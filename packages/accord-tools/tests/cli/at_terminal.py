"""Runs a command at the terminal that is its standard input, as the terminal's own: /dev/tty is this one.

`accord` becomes a part of this process, which may be a fork; any other program takes its place.
"""

import os
import runpy
import sys

if __name__ == "__main__":
    # Who opens a terminal first, without having one, has it for its own.
    os.close(os.open(os.ttyname(0), os.O_RDWR))
    match sys.argv[1:]:
        case [sys.executable, "-m", module, *arguments]:
            sys.argv = [module, *arguments]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case command:
            os.execvp(command[0], command)
