"""Builds the site and checks it.

python -m tools.website          build site/VERSION and check it
python -m tools.website check    check what was built before
"""

from __future__ import annotations

import sys

from tools.website.build import build
from tools.website.built import problems_of
from tools.website.sources import ROOT
from tools.website.versions import short_version

import accord


def main() -> int:
    if sys.argv[1:] not in ([], ["check"]):
        print(__doc__)
        return 2
    site = ROOT / "site"
    folder = site / short_version(accord.__version__) if sys.argv[1:] else build(site)
    if not folder.is_dir():
        print(f"{folder.relative_to(ROOT)} does not exist; run: make docs")
        return 1
    report = problems_of(folder)
    print(*report.problems, sep="\n", end="\n" if report.problems else "")
    print(f"{report.pages} pages, {report.links} links, {len(report.problems)} problems: {folder.relative_to(ROOT)}")
    return bool(report.problems)


if __name__ == "__main__":
    sys.exit(main())
