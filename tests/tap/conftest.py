"""A state folder of each test's own, in which kept traces and descriptors are."""

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder / "accord"
