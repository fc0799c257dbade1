"""Accord is attacked from every side while honest peers work: honest turns are right, and nothing is left.

Each round has a seed, which says what attacks. `pytest -m attack --seed N` tries one again, and `--seconds` for longer.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from itertools import count, repeat

import pytest

from tests.attack.rounds import Failed, run


def seeds_of(option):
    """The round that is asked for, again and again; else new ones, or in CI always the same."""
    if option is not None:
        return repeat(option)
    return count(0 if os.environ.get("CI") else random.SystemRandom().randrange(10**9))


@pytest.mark.attack
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of processes from /proc")
def test_under_attack_honest_turns_are_right_and_nothing_is_left(seconds, pytestconfig, tmp_path):
    reporter = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    say = reporter.write_line if reporter else print
    seen = ""
    try:
        asyncio.run(run(tmp_path, seeds_of(pytestconfig.option.seed), seconds, say))
    except Failed as failed:
        seen = f"{failed}\nonce more: pytest {__file__} --seed {failed.seed}"
    if seen:
        pytest.fail(seen, pytrace=False)
