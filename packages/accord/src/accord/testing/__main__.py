"""Plays an agent over stdio: `python -m accord.testing TRACE` that of a trace, `... FILE NAME` a script."""

import sys

from accord.testing import recorded_peers, scripted_peer

if __name__ == "__main__":
    sys.exit(recorded_peers.main(sys.argv[1]) if len(sys.argv) == 2 else scripted_peer.main(sys.argv[1:]))
