"""Copies of the sources, and the sdist and the wheel that are built from them."""

import importlib.util
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIME = 1_700_000_000
FOLDERS = ["src", "tests", "docs", "examples", "tools", "benchmarks", "interop", "actions", "requirements", ".github"]
specification = importlib.util.spec_from_file_location("distributions", ROOT / "tools" / "distributions.py")
distributions = importlib.util.module_from_spec(specification)
specification.loader.exec_module(distributions)


def copied(target):
    """A copy of the sources with what a developer's folder has beside them: caches, and an environment."""
    leave_out = shutil.ignore_patterns("__pycache__", "node_modules")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, target / folder, ignore=leave_out)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, target)
    for junk in (
        "packages/accord/src/accord/__pycache__/agent.pyc",
        "tests/.pytest_cache/README.md",
        "packages/accord/src/accord.egg-info/PKG-INFO",
    ):
        (target / junk).parent.mkdir(parents=True)
        (target / junk).write_text("junk")
    return target
