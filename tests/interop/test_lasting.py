"""Sessions that last, across restarts of our agent, with our own client; `test_pairs` does it with other people's."""

import pytest
from interop.pairs import Pair
from interop.peers import LASTING, OURS

PAIR = Pair(OURS, LASTING, "lasting")

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("behaviour", PAIR.behaviours(), ids=lambda it: it.name)
def test_a_client_finds_its_sessions_again(behaviour, tmp_path):
    outcome = PAIR.run(behaviour, tmp_path)
    assert outcome.status == "passed", outcome.problems
