"""The search of the site: guides come before reference, design and the pages of single requirements.

The generator's index ranks a word of a title over one of a text, whatever the page is. So the sections of pages that
few people look for are found by their text: their title is that of their page, and their own stands in the text. The
requirements of the protocol have lists of their own and are left out.

After a build, node asks the site's own search the questions of `QUESTIONS`, as a reader would.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

LEFT_OUT = ("requirements/", "all-pages/", "examples/index")
BELOW = (
    "design/",
    "reference/",
    "commands/",
    "errors/",
    "session-updates/",
    "changelog/",
    "contributing/",
    "interop/",
    "engine/",
    "v2/",
)
"""Where sections do not compete with those of guides. The names of the reference are titles of pages, and stay."""

QUESTIONS = {
    "nginx": "deploying/",
    "ask for permission": "agents/",
    "cancel": "agents/",
    "resume": "sessions/",
    "token": "deploying/",
    "Zed": "editors/",
    "install": "install/",
    "history": "model/",
    "MCP server": "mcp/",
    "docker": "deploying/",
    "Neovim": "editors/",
    "agent does not start": "troubleshooting/",
}
"""What people type, and the page that must come first."""

Item = dict[str, Any]


def rank_guides_first(folder: Path) -> None:
    """Rewrite the index of a built site."""
    file = folder / "search.json"
    index = json.loads(file.read_text(encoding="utf-8"))
    index["items"] = ranked(index["items"])
    file.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def ranked(items: list[Item]) -> list[Item]:
    """The items that can be found: those of guides first, because the first of equal ones is shown first."""
    kept = [it for it in items if not it["location"].startswith(LEFT_OUT)]
    guides = [it for it in kept if not it["location"].startswith(BELOW)]
    others = [lowered(it) for it in kept if it["location"].startswith(BELOW)]
    return guides + others


def lowered(item: Item) -> Item:
    """The item with its title in its text, unless it is a name of the reference or a command."""
    place = item["location"]
    if place.startswith(("reference/", "commands/")) and "#" not in place:
        return item
    page = place.partition("/")[2].partition("/")[0].removesuffix("/") or place.partition("/")[0]
    title = page if place.startswith("reference/") else place.partition("/")[0].replace("-", " ").capitalize()
    return {**item, "title": title, "text": f"<p>{item['title']}</p>{item['text']}", "path": []}


def wrong_answers(folder: Path) -> list[str]:
    """The questions that another page than expected answers first; without node, none, and a line says so."""
    if shutil.which("node") is None:
        print("The search was not checked: there is no node.")
        return []
    command = ["node", str(Path(__file__).with_suffix(".js")), str(folder), *QUESTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return [
        f"the search for {question!r} finds {found[question][:1]} first, not {page}"
        for question, page in QUESTIONS.items()
        if not "".join(found[question][:1]).startswith(page)
    ]
