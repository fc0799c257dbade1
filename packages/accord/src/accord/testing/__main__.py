"""Plays an agent over stdio: `python -m accord.testing TRACE` the one of a trace, `... FILE NAME` a script."""

import sys

from accord.testing import recorded_agent, scripted

if __name__ == "__main__":
    sys.exit(recorded_agent.main(sys.argv[1]) if len(sys.argv) == 2 else scripted.main(sys.argv[1:]))
