"""Checks the Python blocks of README and docs with pyright in strict mode.

    python tools/check_documents.py

Every block is a program of its own, as the tests run it. A problem is reported with the page and its line.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
WORK = ROOT / ".make" / "documents"
BLOCK = re.compile(r"^```python[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


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


def main() -> int:
    found = problems()
    for it in found:
        print(f"{it.page}:{it.line}: {it.message} ({it.rule})")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
