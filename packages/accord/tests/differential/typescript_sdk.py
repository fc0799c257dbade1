"""The TypeScript SDK's own validators, in one Node process over a pipe.

    python packages/accord/tests/differential/typescript_sdk.py        install them now, and say where

The package is installed into the user's cache folder, once.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGE, VERSION = "@agentclientprotocol/sdk", "2.4.0"
"""The newest release; it is older than the schema that our types follow."""

ZOD = "zod@4.6.7"
"""What the package checks with; it takes any zod 4, and a difference should not come from another one."""


class Missing(Exception):
    """Something is not here; the text says what to install."""


def installed() -> Path:
    """The folder in which the package is installed; it is, where it was not yet."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Missing(f"{program} is not on the PATH: install Node 20 or later to compare with {PACKAGE} {VERSION}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "accord"
    folder = cache / f"differential-{VERSION}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            _install(Path(work), f"{PACKAGE}@{VERSION}")
            try:
                Path(work, "whole").rename(folder)
            except OSError:  # another test run was faster
                if not folder.is_dir():
                    raise
    return folder


def _install(work: Path, package: str) -> None:
    whole = work / "whole"
    whole.mkdir()
    (whole / "package.json").write_text('{"private": true}\n')
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", package, ZOD]
    try:
        subprocess.run(command, cwd=whole, check=True, capture_output=True, timeout=100)
    except (subprocess.SubprocessError, OSError):
        raise Missing(f"npm could not download it: run `npm install {package}` where there is a network") from None


class Validators:
    """Asks the TypeScript SDK what it makes of JSON values."""

    def __init__(self, folder: Path) -> None:
        self._node = subprocess.Popen(
            ["node", str(HERE / "validators.mjs"), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.types: dict[str, list[str]] = self._ask({})

    def judge(self, module: str, name: str, values: list[Any]) -> list[dict[str, Any]]:
        """For each value `{"ok": true, "value": ...}`, or `{"ok": false, "path": [...], "message": ...}`.

        Numbers come as JavaScript has them, indexes in paths too.
        """
        return self._ask({"module": module, "type": name, "values": values})

    def judge_texts(self, module: str, name: str, texts: list[str]) -> list[dict[str, Any]]:
        """The same for JSON texts; what was read comes as `text`."""
        return self._ask({"module": module, "type": name, "texts": texts})

    def close(self) -> None:
        self._node.stdin.close()
        self._node.stdout.close()
        self._node.wait(10)

    def _ask(self, question: dict[str, Any]) -> Any:
        self._node.stdin.write(json.dumps(question, allow_nan=False).encode() + b"\n")
        self._node.stdin.flush()
        return json.loads(self._node.stdout.readline(), parse_int=float)


if __name__ == "__main__":
    try:
        print(installed())
    except Missing as missing:
        sys.exit(str(missing))
