"""Checks of built HTML: every link and anchor resolves, and no page loads anything from another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
"""The attributes whose address a browser loads by itself; `link` is one too, except for `canonical` and the like."""

NOT_LOADED = {"canonical", "prev", "next", "alternate", "edit"}
IN_STYLES = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Report(NamedTuple):
    """What the checks found."""

    pages: int
    links: int
    problems: list[str]


class Html(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[it] for it in ("id", "name") if it in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in NOT_LOADED:
            self.loaded.append(values.get("href", ""))
        elif tag in LOADED and LOADED[tag] in values:
            self.loaded.append(values[LOADED[tag]])


def problems_of(folder: Path) -> Report:
    """Check every page of a built site."""
    pages = {it: parsed(it) for it in sorted(folder.rglob("*.html"))}
    problems: list[str] = []
    links = 0
    for file, page in pages.items():
        name = file.relative_to(folder).as_posix()
        links += len(page.links)
        problems += [f"{name}: broken link {it}" for it in page.links if not resolves(it, file, folder, pages)]
        problems += [f"{name}: loads {it} from another host" for it in page.loaded if is_foreign(it)]
        problems += [f"{name}: {it} does not exist" for it in page.loaded if not is_there(it, file, folder)]
    problems += [f"{style.relative_to(folder)}: loads {it}" for style, it in foreign_in_styles(folder)]
    return Report(len(pages), links, problems)


def parsed(file: Path) -> Html:
    reader = Html()
    reader.feed(file.read_text(encoding="utf-8"))
    return reader


def resolves(link: str, file: Path, folder: Path, pages: dict[Path, Html]) -> bool:
    """Whether a link leads to a page of the site, and to an anchor of it. Links to other hosts are not tried."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = file if not parts.path else target_of(parts.path, file, folder)
    if target is None or not target.is_file():
        return False
    anchor = unquote(parts.fragment)
    return not anchor or target not in pages or anchor in pages[target].anchors


def target_of(path: str, file: Path, folder: Path) -> Path | None:
    """The file that an address means; None if it is outside of the site."""
    start = folder if path.startswith("/") else file.parent
    target = (start / unquote(path).lstrip("/")).resolve()
    if not target.is_relative_to(folder.resolve()):
        return None
    found = target / "index.html" if target.is_dir() else target
    return folder / found.relative_to(folder.resolve())


def is_foreign(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) and parts.scheme != "data"


def is_there(address: str, file: Path, folder: Path) -> bool:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return True
    target = target_of(parts.path, file, folder)
    return target is not None and target.is_file()


def foreign_in_styles(folder: Path) -> Iterator[tuple[Path, str]]:
    for style in sorted(folder.rglob("*.css")):
        for found in IN_STYLES.finditer(style.read_text(encoding="utf-8")):
            address = found[1] or found[2]
            if is_foreign(address):
                yield style, address
