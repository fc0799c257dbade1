"""Starts the client of an SDK for the conformance checks: one session, one prompt.

    python -m interop.checked_client SDK AGENT

The clients of this suite take their steps from a file; its folder is the current one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from interop.peers import SDKS, command
from interop.script import INITIALIZE, NEW

PROMPT = {
    "call": "session/prompt",
    "params": {"sessionId": "<session>", "prompt": [{"type": "text", "text": "hello"}]},
}


def main(name: str, agent: str) -> None:
    """Become the client."""
    script: dict[str, object] = {"folder": str(Path.cwd()), "known": {}, "steps": [INITIALIZE, NEW, PROMPT]}
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(script, file)
    client = [*command(SDKS[name], "client"), file.name, "--", agent]
    os.environ.update(SDKS[name].environment)
    os.execvp(client[0], client)


if __name__ == "__main__":
    main(*sys.argv[1:])
