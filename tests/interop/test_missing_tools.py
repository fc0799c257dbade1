"""Where Node, Go, Rust or a newer Python is missing, `make interop` leaves their parts out and says what to install."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SKIPPED = re.compile(r"^SKIPPED \[\d+\] \S+: (?P<why>.+)$", re.MULTILINE)


PARTS = ("test_acpx.py", "test_toad.py", "test_examples.py", "test_pairs.py")
FEW = "(not test_pairs or with-demo-demo-talk) and not python and not accord-with"


@pytest.mark.skipif(sys.platform == "win32", reason="an empty path is no start for Python there")
def test_what_cannot_be_had_is_skipped_with_a_line_that_says_what_to_install(tmp_path):
    (tmp_path / "programs").mkdir()
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "interop", "-rs", "-k", FEW),
            *(f"tests/interop/{part}" for part in PARTS),
        ],
        cwd=ROOT,
        env={"PATH": str(tmp_path / "programs"), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    reasons = {found["why"] for found in SKIPPED.finditer(ran.stdout)}
    assert {why.partition(" here, install ")[0] for why in reasons} == {
        "acpx-0.19.1: no npm",
        "toad-python: no go",
        "interop-typescript: no node",
        "interop-go: no go",
        "interop-rust: no cargo",
    }
    assert all(why.partition(" here, install ")[2] for why in reasons)
