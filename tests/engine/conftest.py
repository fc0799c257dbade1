"""Lets the tests of this folder share modules, and runs their `async def` tests in virtual time."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from virtual_time import VirtualLoop


def pytest_asyncio_loop_factories():
    return {"virtual": VirtualLoop}
