"""A small suite for test_runner.py: it is no part of the real one, because its name does not begin with `test_`."""

import os
from pathlib import Path

import pytest

STATE = Path(os.environ.get("SAMPLE_STATE", "."))
"""Where the tests remember that they have run."""


def first_time(name: str) -> bool:
    try:
        (STATE / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def test_passes():
    pass


def test_is_skipped():
    pytest.skip("always")


def test_fails_once():
    assert not first_time("failed")


def test_ends_the_process_once():
    if first_time("ended"):
        os._exit(3)


def test_comes_after_the_end_of_the_process():
    pass


def test_always_fails():
    assert "fails" not in os.environ.get("SAMPLE_WITH", "")
