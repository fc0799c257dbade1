"""Hosts as processes, over a directory in SQLite and in PostgreSQL."""

import pytest

from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401 - fixtures
from tests.hosts.hosting import KEY, HostProcesses
from tests.store.conftest import postgres, schema  # noqa: F401 - fixtures

LEASES = {"test_deaths": 4.0}
"""Seconds of a lease, for tests that wait until one is over. In all others a busy machine must not let one expire."""


def pytest_generate_tests(metafunc):
    if "directory" in metafunc.fixturenames:
        # Three processes cost a second of a core to start. So an ordinary run has each test over one directory.
        ordinary = {
            "test_deaths": ["postgres"],
            "test_host_table": ["sqlite", "postgres"],
            "test_quotas": ["sqlite", "postgres"],
        }
        chosen = ordinary.get(metafunc.module.__name__.rpartition(".")[2], ["sqlite"])
        both = [pytest.param(it, marks=() if it in chosen else pytest.mark.links) for it in ("sqlite", "postgres")]
        metafunc.parametrize("directory", both, indirect=True)


@pytest.fixture
def directory(request, tmp_path):
    """Where the hosts are listed, and their sessions kept: the arguments for a host process."""
    lease = {"lease": LEASES.get(request.module.__name__.rpartition(".")[2], 30.0)}
    if request.param == "sqlite":
        return {"directory": str(tmp_path / "hosts.sqlite3"), "store": str(tmp_path / "sessions.sqlite3"), **lease}
    url, named = request.getfixturevalue("postgres").url, request.getfixturevalue("schema")
    return {"directory": url, "store": url, "schema": named, "key": KEY, **lease}


@pytest.fixture
async def hosts(directory):
    """Three hosts, and a balancer in front that sends each request to the next."""
    async with HostProcesses(directory, 3) as running:
        yield running
