"""Real servers on the loopback, and clients of all three ways to them."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from talking import WAYS, an_agent

from accord.http import serving


@pytest.fixture
async def server():
    async with serving(an_agent()) as running:
        yield running


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture(autouse=True)
async def nothing_is_left(caplog):
    """No task outlives the test that it belongs to, and nothing is forgotten."""
    gc.collect()
    caplog.set_level(logging.INFO, "accord")
    tasks = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()} - tasks
    if left:
        await asyncio.wait(left, timeout=5)
    assert {task for task in left if not task.done()} == set()
    assert [record for record in caplog.get_records("call") if record.name == "asyncio"] == []
