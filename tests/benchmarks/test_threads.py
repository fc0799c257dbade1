"""What threads gain: that each figure is measured, in this interpreter and in a process of another one."""

import json
import sys

import pytest

from benchmarks import threads


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name in ("PROMPTS", "CHUNKS", "ROUNDS"):
        monkeypatch.setattr(threads, name, 2)
    monkeypatch.setattr(threads, "WORK", 10)


def test_each_figure_is_measured(capsys):
    threads.main([])
    figures = json.loads(capsys.readouterr().out)
    assert figures["lock"] is threads.has_lock()
    assert figures["python"] == sys.version.split()[0]
    measured = [figures[name] for name in figures if name not in ("lock", "python")]
    assert len(measured) == 4
    assert min(measured) > 0


def test_an_interpreter_that_fails_is_told(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(threads.subprocess.CalledProcessError):
        threads.main([str(broken)])
