"""The tests of the repository, and what the tests of all packages use.

The tests of a package stand in its own folder, `packages/*/tests`, and are modules of this package, too: a test imports
`tests.waiting` and `tests.http.serving` wherever it stands.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(ROOT.glob("packages/*"))
SOURCES = [str(package / "src") for package in PACKAGES]
"""The folders that an interpreter needs on its path to import all packages from their sources."""
FOLDERS = [ROOT / "tests", *(package / "tests" for package in PACKAGES)]
"""The folders with tests: those of the repository, and those of each package."""

__path__ += [str(package / "tests") for package in PACKAGES]


def set_environment() -> None:
    """Let programs that tests start find the modules of tests, and read the bytecode of earlier ones.

    The bytecode halves a start, so it is used whatever the environment says.
    """
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(ROOT) not in places:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), *places]))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
