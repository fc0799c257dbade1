"""Lets the tests of this folder share modules, and runs their `async def` tests in virtual time."""

from tests.engine.virtual_time import VirtualLoop


def pytest_asyncio_loop_factories():
    return {"virtual": VirtualLoop}
