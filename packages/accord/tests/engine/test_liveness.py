"""Random programs of nested messages, both ways: nothing hangs, nothing is out of order, nothing is left.

A deadline that has to pass before something goes on would be a hang in disguise: there is none here that is near.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.engine.programs import Program
from tests.engine.rules import broken_rules
from tests.engine.running import Planned, Run
from tests.engine.virtual_time import VirtualLoop, settle

log = logging.getLogger("accord")

SEEDS = 2_000
AT_ONCE = 100

CLOSING = 5.0
"""Seconds, of a clock that stands still while anything happens: a few steps of the end may each take their grace."""

PLANNED = (Planned, asyncio.CancelledError)


class Complaints(logging.Filter):
    """Keeps what the engine logs although no program asks for it, and lets nothing through."""

    def __init__(self, problems):
        super().__init__()
        self.problems = problems

    def filter(self, record):
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, PLANNED) and "cancelled its" not in record.getMessage():
            self.problems.append(f"logged: {record.getMessage()} {error!r}")
        return False


async def problems_with(seed, problems):
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _, context: problems.append(f"{context['message']}: {context.get('exception')!r}")
    )
    run = Run(Program(seed))
    await run.start()
    await settle()
    complete = run.complete
    if complete:
        problems += [f"hangs: {what}" for what in run.left(complete=True)]
    before = loop.now
    await run.close()
    if loop.now > before + CLOSING:
        problems.append(f"closing took {loop.now - before} seconds")
    await settle()
    problems += [f"left after the end: {what}" for what in run.left(complete=complete)]
    for side in run.sides:
        problems += broken_rules(side, complete=complete)
    problems += run.failures()


def pytest_generate_tests(metafunc):
    if "seeds" in metafunc.fixturenames:
        option = metafunc.config.option
        every = [option.seed] if option.seed is not None else range(option.seeds or SEEDS)
        batches = [every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE)]
        metafunc.parametrize("seeds", batches, ids=[f"{batch[0]}-{batch[-1]}" for batch in batches])


def run(check, *arguments):
    """Runs a check that reports problems in virtual time."""
    problems = []
    complaints = Complaints(problems)
    log.addFilter(complaints)
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(check(*arguments, problems))
    finally:
        log.removeFilter(complaints)
    return problems


def test_any_program_comes_to_its_end_in_order_and_leaves_nothing(seeds, pytestconfig):
    for seed in seeds:
        if problems := run(problems_with, seed):
            if pytestconfig.option.seed is not None:
                print(Program(seed))
            again = f"seed {seed}; once more, with its program: pytest {__file__} --seed {seed}"
            pytest.fail("\n".join([again, *problems]), pytrace=False)
