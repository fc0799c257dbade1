"""The versions of the site: each in a folder of its own, `versions.json` for the menu, and a page that leads to one.

Building one version leaves the others as they are, so a site with several versions is made by building each release
into the same folder.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

LATEST = "latest"

REDIRECT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Accord</title>
<meta http-equiv="refresh" content="0; url={target}/">
<link rel="canonical" href="{target}/">
</head>
<body><p><a href="{target}/">The documentation of Accord {target}</a></p></body>
</html>
"""


def short_version(version: str) -> str:
    """`0.2` for `0.2.1`: corrections of a release change no page's meaning."""
    return ".".join(version.split(".")[:2])


def publish(html: Path, site: Path, version: str) -> Path:
    """Move a built site to its version's folder; returns that folder."""
    site.mkdir(parents=True, exist_ok=True)
    place = site / version
    shutil.rmtree(place, ignore_errors=True)
    shutil.move(html, place)
    known = sorted(versions_in(site), key=order, reverse=True)
    listed = [{"version": it, "title": it, "aliases": [LATEST] if it == known[0] else []} for it in known]
    (site / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    (site / "index.html").write_text(REDIRECT.format(target=known[0]), encoding="utf-8")
    latest = site / LATEST
    latest.mkdir(exist_ok=True)
    (latest / "index.html").write_text(REDIRECT.format(target=f"../{known[0]}"), encoding="utf-8")
    return place


def versions_in(site: Path) -> list[str]:
    return [it.name for it in site.iterdir() if it.is_dir() and re.fullmatch(r"\d+(\.\d+)*", it.name)]


def order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
