"""What a run covers: how long faults go on, how many programs the fuzzers try, and what runs only when it is asked for.

pytest -m torture --seconds 600     faults on purpose for ten minutes instead of a few seconds
pytest -m attack --seconds 300      attacks for five minutes: on servers, clients, the chat and more
pytest --seeds 20000                many more random programs
pytest --seed 4711                  this one again
pytest -m interop                   with other people's implementations
pytest -m rust                      with what Rust offers beside its SDK, which takes ten minutes to build
pytest -m links                     the interaction suite over WebSocket and HTTP; version 2 and cases over one link
pytest -m all_links                 the same, all of it over every link
pytest -m release                   the wheel in clean environments: every Python with every extra
pytest -m agents                    with real agents and a model that is made of rules
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from tests import set_environment

# A shared machine that checks a change should find the same examples each time; at home there are new ones every time.
# No example is refused because it took long: a busy machine is no fault.
settings.register_profile("home", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("home"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")

set_environment()

# Commands read what the user has set and remember what they did: tests have folders of their own for both.
OWN = tempfile.mkdtemp(prefix="accord-tests-")
atexit.register(shutil.rmtree, OWN, ignore_errors=True)
os.environ |= {"XDG_CONFIG_HOME": f"{OWN}/config", "XDG_STATE_HOME": f"{OWN}/state", "XDG_DATA_HOME": f"{OWN}/data"}
os.environ["ACCORD_REGISTRY"] = "off"
os.environ.pop("ACCORD_CONFIG", None)

# A run in the background of a script ignores SIGINT, and so would the programs of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ON_REQUEST = (
    "agents",
    "interop",
    "links",
    "release",
    "rust",
)
"""What runs only when its marker is asked for."""

SECONDS = 4.0
PATIENCE = 200.0
"""Seconds that a test with faults may take beyond the time it is given."""


def pytest_collection_finish():
    """Many tests collect garbage, to see that nothing is left; what the tests themselves are made of is never any."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser):
    group = parser.getgroup("accord")
    group.addoption(
        "--seconds", type=float, default=SECONDS, help="how long the tests marked `torture` or `attack` go on"
    )
    group.addoption("--seeds", type=int, help="how many random programs each fuzzer tries")
    group.addoption("--seed", type=int, help="the one random program to try")


def pytest_configure(config):
    config.addinivalue_line("markers", "torture: faults on purpose, for --seconds")
    config.addinivalue_line("markers", "attack: attacks while honest peers work, for --seconds")
    config.addinivalue_line("markers", "agents: real agents, installed on demand; only with -m agents")
    config.addinivalue_line("markers", "links: over WebSocket and HTTP; only with -m links")
    config.addinivalue_line("markers", "all_links: the same as links, with nothing left out")
    config.addinivalue_line("markers", "release: every Python with every extra; only with -m release")
    config.addinivalue_line("markers", "rust: with Rust's conductor and its examples; only with -m rust")
    config.addinivalue_line("markers", "interop: with other people's implementations; only with -m interop")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("torture") or item.get_closest_marker("attack"):
            item.add_marker(pytest.mark.timeout(config.option.seconds + PATIENCE))
    unasked = [marker for marker in ON_REQUEST if marker not in config.option.markexpr]
    if unasked:
        left_out, asked = [], []
        for item in items:
            (left_out if any(item.get_closest_marker(marker) for marker in unasked) else asked).append(item)
        items[:] = asked
        if left_out:
            config.hook.pytest_deselected(items=left_out)


@pytest.fixture
def seconds(pytestconfig):
    """How long a test marked `torture` or `attack` goes on."""
    return pytestconfig.option.seconds


@pytest.fixture
def without_mcp(monkeypatch):
    """Call this, and from then on the package of MCP is not installed."""
    from accord.installation import mcp_is_installed

    def remove():
        monkeypatch.setitem(sys.modules, "mcp", None)  # so that an import of it fails, too
        mcp_is_installed.cache_clear()

    yield remove
    monkeypatch.undo()
    mcp_is_installed.cache_clear()
