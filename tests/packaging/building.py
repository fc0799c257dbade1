"""Copies of the sources, and the sdists and wheels that are built from them."""

import importlib.util
import shutil
from pathlib import Path

from tests import ROOT

TIME = 1_700_000_000
specification = importlib.util.spec_from_file_location("distributions", ROOT / "tools" / "distributions.py")
distributions = importlib.util.module_from_spec(specification)
specification.loader.exec_module(distributions)


def copied(target):
    """A copy of the packages with what a developer's folder has beside them: caches, and an environment."""

    def left_out(folder, _):
        return {"__pycache__", "tests"} if Path(folder).parent == ROOT / "packages" else {"__pycache__"}

    shutil.copytree(ROOT / "packages", target / "packages", ignore=left_out)
    package = target / "packages" / "accord"
    for junk in ("src/accord/__pycache__/agent.pyc", "tests/.pytest_cache/README.md", "src/accord.egg-info/PKG-INFO"):
        (package / junk).parent.mkdir(parents=True)
        (package / junk).write_text("junk")
    return target
