"""Builds the site and checks it.

python -m tools.website          build site/VERSION and check it
python -m tools.website links    build it and check its links and search, not its accessibility
python -m tools.website check    check what was built before
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.website.accessibility import Unavailable, problems
from tools.website.build import build
from tools.website.built import problems_of
from tools.website.search import wrong_answers
from tools.website.sources import ROOT
from tools.website.versions import short_version

import accord


def main() -> int:
    if sys.argv[1:] not in ([], ["links"], ["check"]):
        print(__doc__)
        return 2
    site = ROOT / "site"
    folder = site / short_version(accord.__version__) if "check" in sys.argv else build(site)
    if not folder.is_dir():
        print(f"{folder.relative_to(ROOT)} does not exist; run: make docs")
        return 1
    report = problems_of(folder)
    found = [*report.problems, *wrong_answers(folder)]
    if "links" not in sys.argv:
        found += serious_problems(folder)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{report.pages} pages, {report.links} links, {len(found)} problems: {folder.relative_to(ROOT)}")
    return bool(found)


def serious_problems(folder: Path) -> list[str]:
    """What axe reports; nothing, after a line that says why, where it cannot run."""
    try:
        return [it.line() for it in problems(folder)]
    except Unavailable as missing:
        print(f"Accessibility was not checked: {missing}.")
        return []


if __name__ == "__main__":
    sys.exit(main())
