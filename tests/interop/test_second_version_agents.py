"""Our agent with the TypeScript SDK's client of version 2."""

import asyncio
import base64
import json
import os
import sys
from pathlib import Path

import pytest
from benchmarks.build import Unavailable
from interop.peers import built

from interop import agents, clients

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

CLIENT = Path(clients.__file__).parent / "typescript_v2_client.mjs"
AGENT = Path(agents.__file__).parent / "both_versions.py"


async def test_the_typescript_client_of_version_2_goes_through_the_whole_lifecycle(tmp_path):
    try:
        folder = built("typescript").folder
    except Unavailable as missing:
        pytest.skip(str(missing))
    process = await asyncio.create_subprocess_exec(
        "node",
        str(CLIENT),
        sys.executable,
        str(AGENT),
        cwd=tmp_path,
        env={**os.environ, "ACP_SDK": str(folder / "node_modules/@agentclientprotocol/sdk/dist")},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    found = json.loads(output)
    assert base64.b64decode("".join(found.pop("ran"))) == b"ran\n"
    assert found == {
        "version": 2,
        "name": "both-versions",
        "commands": ["ask", "fail", "wait", "run", "watch"],
        "text": "Hello there.",
        "asked": {"questions": [{"title": "Push", "subject": "tool_call"}], "reason": "end_turn"},
        "failed": "the model is silent",
        "cancelled": {"reason": "cancelled", "outcome": -32800, "answered": "string"},
        "background": ["tool_call"],
        "mode": ["code"],
        "resumed": ["code"],
    }
