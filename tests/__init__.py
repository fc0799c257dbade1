"""The tests of the repository, and what the tests of all packages use.

The tests of a package stand in its own folder, `packages/*/tests`, and are modules of this package, too: a test imports
`tests.waiting` and `tests.http.serving` wherever it stands.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(ROOT.glob("packages/*"))
SOURCES = [str(package / "src") for package in PACKAGES]
"""The folders that an interpreter needs on its path to import all packages from their sources."""
FOLDERS = [ROOT / "tests", *(package / "tests" for package in PACKAGES)]
"""The folders with tests: those of the repository, and those of each package."""

__path__ += [str(package / "tests") for package in PACKAGES]
