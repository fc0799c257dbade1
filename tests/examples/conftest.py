"""The examples as people run them: each in a process, with a client of ours."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import accord
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def running(tmp_path):
    """`async with running("echo_agent.py") as session`: a session with that example, in an empty folder."""

    @asynccontextmanager
    async def running(example, *, allow=True, env=None, session_id=None):
        client = accord.Client(files=True, terminals=True, permissions=lambda _: allow)
        command = [sys.executable, "-W", "error", str(EXAMPLES / example)]
        async with accord.connect(command, client, env=env) as remote:
            if session_id is None:
                yield await remote.new_session(tmp_path)
            else:
                yield await remote.resume(session_id, tmp_path)

    return running
