"""What other people's programs do wrong is shown without any of our code, and is still as it is said to be."""

import pytest
from benchmarks.build import Unavailable
from interop.reproductions import faults, printed, promised

SDKS, AGENTS = pytest.mark.interop, pytest.mark.agents


@pytest.mark.parametrize("fault", [pytest.param(it, marks=SDKS if it.startswith("go_") else AGENTS) for it in faults()])
@pytest.mark.timeout(900)
def test_a_fault_of_theirs_is_reproduced(fault, tmp_path):
    try:
        found = printed(fault, tmp_path)
    except Unavailable as missing:
        pytest.skip(str(missing))
    assert found == promised(fault)
