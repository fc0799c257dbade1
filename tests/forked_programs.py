"""Fixtures of folders whose tests start many programs; their conftest.py imports both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import fork_server


@pytest.fixture(scope="module", autouse=True)
def forked_programs() -> Iterator[None]:
    """Programs of Python that a test starts are forks of a warm process: see `tests/fork_server.py`."""
    if fork_server.POSSIBLE:
        server = fork_server.server()
        server.use()
        yield
        server.disuse()
    else:
        yield


@pytest.fixture
def fresh_programs(forked_programs: None) -> Iterator[None]:
    """Programs of Python that this test starts are new interpreters."""
    if fork_server.POSSIBLE:
        server = fork_server.server()
        server.disuse()
        yield
        server.use()
    else:
        yield
