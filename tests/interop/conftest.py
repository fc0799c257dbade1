"""The suite is a package of the checkout, not of the distribution."""

import pytest
from benchmarks.build import Unavailable
from interop.examples import FRAMEWORKS, framework_example


@pytest.fixture(params=FRAMEWORKS)
def framework_agent(request):
    try:
        return framework_example(request.param)
    except Unavailable as missing:
        pytest.skip(str(missing))
