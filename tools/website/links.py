"""Links of a page: to a neighbour in the repository they lead to that page of the site, otherwise they become text.

The repository's address is not known to the source, so a link to a file that is not in the site cannot lead anywhere.
With the variable `ACCORD_REPOSITORY` it leads there.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Collection

from tools.website.page import FENCED, Page

LINK = re.compile(r"(?P<image>!?)\[(?P<label>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
ABROAD = re.compile(r"^(?:[a-z]+:|#|//)")


def with_site_links(page: Page, place_of: Callable[[str], str | None], known: Collection[str]) -> Page:
    """The page with links that are right in the site; `known` are the paths of all pages and pictures."""

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if ABROAD.match(target):
            return found[0]
        file, _, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page.origin or page.path), file))
        destination = place_of(place) if page.origin else place
        if destination is None or destination not in known:
            return outside(found["image"], found["label"], place)
        relative = posixpath.relpath(destination, posixpath.dirname(page.path) or ".")
        return f"{found['image']}[{found['label']}]({relative}{'#' + anchor if anchor else ''})"

    return page._replace(text=outside_of_code(page.text, lambda text: LINK.sub(link, text)))


def outside(image: str, label: str, place: str) -> str:
    """A link to a file of the repository that is not in the site."""
    repository = os.environ.get("ACCORD_REPOSITORY", "").rstrip("/")
    if not repository or image:
        return label
    return f"[{label}]({repository}/blob/HEAD/{place})"


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """The text with its prose changed; blocks of code stay as they are."""
    parts: list[str] = []
    at = 0
    for block in FENCED.finditer(text):
        parts += [change(text[at : block.start()]), block[0]]
        at = block.end()
    return "".join([*parts, change(text[at:])])
