"""`Page`: one page of the site, as Markdown."""

from __future__ import annotations

import re
from typing import NamedTuple

FENCED = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


class Page(NamedTuple):
    """A page of the site."""

    path: str
    """Where it is in the site, such as `coming-from/acpx.md`."""
    text: str
    origin: str = ""
    """The file of the repository that it was made from; its links are relative to that file."""

    @property
    def title(self) -> str:
        """The first heading, without marks."""
        found = TITLE.search(FENCED.sub("", self.text))
        return found[1].replace("`", "").strip() if found else self.path

    @property
    def summary(self) -> str:
        """The first paragraph, as one line."""
        body = TITLE.sub("", COMMENT.sub("", FENCED.sub("", self.text)), count=1)
        paragraphs = (it.strip() for it in body.split("\n\n"))
        first = next((it for it in paragraphs if it and not it.startswith(("|", "!", "#", "-", "<"))), "")
        return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
