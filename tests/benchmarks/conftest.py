"""The benchmarks are a package of the checkout, not of the distribution."""

import pytest
from benchmarks.results import Result


@pytest.fixture
def result():
    """Makes a result of which only what matters to a test has to be said."""

    def make(**values):
        usual = {
            "measure": "stream",
            "peer": "go",
            "loop": "asyncio",
            "ratio": 4.0,
            "spread": 0.02,
            "ours": 400_000.0,
            "theirs": 100_000.0,
            "unit": "updates/s",
            "runs": 5,
        }
        return Result(**(usual | values))

    return make
