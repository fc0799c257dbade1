"""The build: pages are written to build/site, Zensical makes HTML of them, and the result goes to site/VERSION."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.website.command_pages import command_pages
from tools.website.error_pages import error_pages
from tools.website.links import outside_of_code, with_site_links
from tools.website.module_pages import module_pages
from tools.website.navigation import navigation
from tools.website.page import Page
from tools.website.plain import write_plain
from tools.website.reference_pages import reference_pages
from tools.website.requirement_pages import requirement_pages
from tools.website.search import rank_guides_first
from tools.website.settings import SCRIPT, STYLES, settings
from tools.website.sources import ROOT, documents, examples, pictures, site_path
from tools.website.update_pages import update_pages
from tools.website.version_pages import version_pages
from tools.website.versions import publish, short_version

import accord

WORK = ROOT / "build" / "site"
SPAN = re.compile(r"`[^`\n]+`")
ASSETS = {STYLES: Path(__file__).with_name("accord.css"), SCRIPT: Path(__file__).with_name("accord.js")}
"""Our own files that pages load, by their place in the site."""


def all_pages() -> dict[str, Page]:
    """Every page of the site by its path, with links that are right there."""
    pages = {it.path: it for it in every_page()}
    known = pages.keys() | pictures().keys()
    return {path: with_site_links(page, site_path, known) for path, page in pages.items()}


def every_page() -> Iterator[Page]:
    yield from documents()
    yield from examples()
    yield from reference_pages()
    yield from update_pages()
    yield from error_pages()
    yield from requirement_pages()
    yield from command_pages()
    yield from version_pages()
    yield from module_pages()


def build(site: Path = ROOT / "site") -> Path:
    """Build this version of the site; returns its folder."""
    pages = all_pages()
    order = navigation(pages)
    write(pages, order)
    run_generator()
    html = WORK / "html"
    if "ACCORD_SITE" not in os.environ:  # it needs addresses from the root: without them, a server's own page is better
        (html / "404.html").unlink(missing_ok=True)
    write_plain(html, pages, order)
    rank_guides_first(html)
    return publish(html, site, short_version(accord.__version__))


def write(pages: dict[str, Page], order: list[dict[str, Any]]) -> None:
    """Write what the generator reads."""
    shutil.rmtree(WORK, ignore_errors=True)
    for path, page in pages.items():
        file = WORK / "docs" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(outside_of_code(page.text, without_escapes), encoding="utf-8")
    for path, file in {**pictures(), **ASSETS}.items():
        place = WORK / "docs" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    text = json.dumps(settings(order, os.environ.get("ACCORD_SITE")), indent=2)
    (WORK / "mkdocs.yml").write_text(text, encoding="utf-8")


def without_escapes(text: str) -> str:
    """Tables as Python-Markdown reads them: a bar in code is no border, so it needs no backslash."""
    return SPAN.sub(lambda found: found[0].replace("\\|", "|"), text)


def run_generator() -> None:
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--config-file", "mkdocs.yml"]
    done = subprocess.run(command, cwd=WORK, check=False)
    if done.returncode:
        raise SystemExit("Zensical did not build the site; 'make docs' installs it.")
