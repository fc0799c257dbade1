"""Checks the documents: Python blocks with pyright in strict mode, some turns of phrase, and the number of words.

    python tools/check_documents.py

Every block is a program of its own, as the tests run it. A problem is reported with the page and its line.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
WORK = ROOT / ".make" / "documents"
BLOCK = re.compile(r"^```python[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)

PLAIN: dict[str, str] = {
    r"where none is (?:there|given)": "without one",
    r"in front stands": "put ... in front",
    r"takes lightly": "ignores",
    r"belongs? into": "belongs in",
    r"(?:is|are) told in its own words": "is shown verbatim",
    r"what is called what": "names side by side",
    r"an? [a-z]+ of (?:yours|ours)\b": "your ..., our ...",
    r"a way over": "a migration path",
    r"is answered with the one that is meant": "Accord suggests ...",
}
"""What reads as translated, and what to write; a word may be on another line."""
PROSE = ("README.md", "CONTRIBUTING.md", "AGENTS.md", "docs/*.md", "docs/coming-from/*.md")
STRINGS = "packages/*/src/**/*.py"

WORDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "docs": (45_000, ("docs/*.md", "docs/coming-from/*.md")),
    "docs/design": (24_500, ("docs/design/*.md",)),
}
"""How many words these pages may have together, as `wc -w` counts them. The numbers only shrink."""
SPARE = 1000
"""How far below its budget a part may be before the budget has to follow."""


class Problem(NamedTuple):
    page: str
    line: int
    rule: str
    message: str


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def extract() -> dict[Path, tuple[str, int]]:
    """Writes each block to a file; says from which page and line each file is."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    sources: dict[Path, tuple[str, int]] = {}
    for document in documents():
        text, page = document.read_text(), document.relative_to(ROOT).as_posix()
        for match in BLOCK.finditer(text):
            line = text[: match.start("code")].count("\n")
            name = re.sub(r"\W", "_", page.removesuffix(".md"))
            path = WORK / f"{name}_{line}.py"
            path.write_text(match["code"])
            sources[path.resolve()] = (page, line)
    return sources


def diagnose() -> list[dict[str, Any]]:
    settings = {
        "include": ["."],
        "exclude": [],
        "extraPaths": [str(it) for it in ROOT.glob("packages/*/src")],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
    }
    (WORK / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(WORK)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        raise SystemExit(f"pyright did not run; 'make check' installs it. {done.stderr or done.stdout}")
    found: list[dict[str, Any]] = json.loads(done.stdout)["generalDiagnostics"]
    return found


def problems() -> list[Problem]:
    sources = extract()
    found: list[Problem] = []
    for it in diagnose():
        page, line = sources[Path(it["file"]).resolve()]
        row = it["range"]["start"]["line"] + 1
        found.append(Problem(page, line + row, it.get("rule", "syntax"), it["message"]))
    return found


def odd_phrases() -> Iterator[Problem]:
    """Places in the guides and in the sources that read as translated."""
    for file in sorted(it for pattern in (*PROSE, STRINGS) for it in ROOT.glob(pattern)):
        text = file.read_text()
        for phrase, plain in PLAIN.items():
            for found in re.finditer(phrase.replace(" ", r"\s+"), text, re.IGNORECASE):
                line = text[: found.start()].count("\n") + 1
                message = f"{' '.join(found[0].split())!r} is not plain English; write for instance: {plain}"
                yield Problem(file.relative_to(ROOT).as_posix(), line, "plain English", message)


def wrong_lengths() -> Iterator[Problem]:
    """Folders of documents that have more words than their budget, or so few that the budget has to follow."""
    for folder, (budget, patterns) in WORDS.items():
        words = sum(len(file.read_text().split()) for pattern in patterns for file in ROOT.glob(pattern))
        if not budget - SPARE <= words <= budget:
            advice = "say less, or link to what says it already" if words > budget else "lower the budget in WORDS"
            yield Problem(folder, 1, "words", f"{words} words, where the budget is {budget}: {advice}")


def main() -> int:
    found = [*wrong_lengths(), *odd_phrases(), *problems()]
    for it in found:
        print(f"{it.page}:{it.line}: {it.message} ({it.rule})")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
