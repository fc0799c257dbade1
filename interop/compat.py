"""The official Python SDK's own examples and tests on `accord.compat.acp`, with other imports and no other change.

python -m interop.compat          runs its tests, and prints what passes and what does not
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from interop.real_agents import cache_folder, install

ROOT = Path(__file__).resolve().parents[1]
VERSION = "0.12.1"
NAME = f"agent_client_protocol-{VERSION}"
OURS = "accord.compat.acp"

_IMPORT = re.compile(r"^(\s*)(from|import) acp\b", re.MULTILINE)
_BARE = re.compile(rf"^(\s*)import {re.escape(OURS)}$", re.MULTILINE)
_PYDANTIC = re.compile(r"^from pydantic import BaseModel$", re.MULTILINE)

PRIVATE = "it calls or replaces private methods of the SDK's Connection, which our engine does not have"
PYDANTIC = (
    "it asks isinstance(model, pydantic.BaseModel): our models are not pydantic's; "
    "the test passes when BaseModel comes from accord.compat.acp.schema, too"
)
QUEUES = "it imports OutboundStream, a queue inside of the SDK's server; ours has its own"
ENDED = (
    "its server ends the event stream at once: for us the connection is over then, so the next message is not posted"
)

REASONS = {
    r"tests/http/test_fixes\.py.*": QUEUES,
    r"tests/http/test_http_client\.py::test_post_error_status_raises": ENDED,
    r"tests/test_connection_recovery\.py::.*": PRIVATE,
    r"tests/test_deserialize\.py.*": "it imports a private module with validators of pydantic's",
    r"tests/test_gen_all\.py.*": "it tests the generator that writes the SDK's own schema.py",
    r"tests/test_golden\.py::test_helpers_match_golden\[.*": PYDANTIC,
    r"tests/test_request_error_logging\.py::.*": PRIVATE,
    r"tests/test_rpc\.py::test_cancelled_request_is_removed_from_pending_map": PRIVATE,
    r"tests/test_rpc\.py::test_ignore_invalid_messages": (
        "it expects silence about a message that is none; JSON-RPC wants an error, and our engine sends it"
    ),
}
"""The tests that cannot pass, as patterns of their names, and why."""


@dataclass(frozen=True)
class Outcome:
    """What came of a run of the SDK's tests."""

    passed: frozenset[str]
    failed: frozenset[str]
    skipped: frozenset[str]

    def unexplained(self) -> list[str]:
        """The failed tests that no row of REASONS names."""
        return sorted(name for name in self.failed if reason_of(name) is None)


def reason_of(name: str) -> str | None:
    """Why this test cannot pass; None if it should."""
    return next((why for pattern, why in REASONS.items() if re.fullmatch(pattern, name)), None)


def source() -> Path:
    """The folder of the SDK's source package; raises Unavailable if it cannot be fetched."""
    folder = cache_folder() / f"official-sdk-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    fetch = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", "."]
    install(folder, [sys.executable, *fetch, f"agent-client-protocol=={VERSION}"])
    if not (folder / NAME).exists():
        with tarfile.open(folder / f"{NAME}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return folder / NAME


def rewritten(folder: Path, *, models_too: bool = False) -> Path:
    """A copy of the SDK's tests and examples in this folder, which imports ours; `models_too`: also `BaseModel`."""
    for part in ("tests", "examples", "scripts", "schema"):
        if (source() / part).exists():
            shutil.copytree(source() / part, folder / part)
    for path in folder.rglob("*.py"):
        text = _BARE.sub(rf"\1import {OURS} as acp", _IMPORT.sub(rf"\1\2 {OURS}", path.read_text()))
        if models_too:
            text = _PYDANTIC.sub(f"from {OURS}.schema import BaseModel", text)
        path.write_text(text)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Variables in which programs find ours, and each other."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(folder)])}


def run_tests(folder: Path, *tests: str) -> Outcome:
    """Run these tests of a rewritten copy, all of them by default."""
    report = folder / "report.xml"
    quiet = ["-q", "-p", "no:cacheprovider", "--rootdir", ".", "--timeout", "60", f"--junitxml={report}"]
    settings = ["-o", "asyncio_mode=strict", "-o", "asyncio_default_fixture_loop_scope=function"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *settings, "--continue-on-collection-errors", *(tests or ["tests"])],
        cwd=folder,
        env=environment(folder),
        check=False,
        capture_output=True,
        timeout=300,
    )
    found: dict[str, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        how = "skipped" if "skipped" in kinds else "failed" if kinds & {"failure", "error"} else "passed"
        found[how].add(_name(case.get("classname") or "", case.get("name") or ""))
    return Outcome(**{how: frozenset(names) for how, names in found.items()})


def _name(module: str, test: str) -> str:
    """The name of a test as pytest prints it; of a file that could not be loaded, the file's."""
    if not module:
        return f"{test.replace('.', '/')}.py"
    return f"{module.replace('.', '/')}.py::{test}"


def main() -> None:
    """Run the tests, and print what came of them."""
    with TemporaryDirectory() as scratch:
        outcome = run_tests(rewritten(Path(scratch)))
    for name in sorted(outcome.failed):
        print(f"{name}: {reason_of(name) or 'NO REASON'}")
    print(f"{len(outcome.passed)} passed, {len(outcome.failed)} failed, {len(outcome.skipped)} skipped")


if __name__ == "__main__":
    main()
