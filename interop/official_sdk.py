"""The official Python SDK on our engine: its own tests, for several releases of it, and agents that are built on it.

python -m interop.official_sdk          runs them, and prints what passes and what does not
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from interop.real_agents import DEEPAGENTS, HERMES, PYDANTIC, RealAgent, cache_folder, install

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ("0.8.0", "0.9.0", "0.10.1", "0.11.1", "0.12.1", "1.0.0rc3")
"""The releases that our own tests run with: the last one of each series, but for the oldest."""
TESTED = RELEASES[-2:]
"""The releases whose own tests are run."""

CONFTEST = """\
import os
if os.environ.get("ON_OUR_ENGINE"):
    from accord_adapters import official_sdk
    official_sdk.install()
"""

PRIVATE = "it calls or replaces private methods of the SDK's Connection, which our engine does not have"
GENERATOR = "it tests the generator that writes the SDK's own schema.py"
ID = "null, true and fractions are no ids in ACP: such a request is refused with -32600; and 1.0 is the number 1"
STARTS = "our engine starts a request before it cancels it, so the handler sees both in order"
ANSWERS = "our engine answers every request, also those that are open when the connection is closed"
PATIENCE = "it gives closing one second; ours waits as long for the handlers, and twice as long for the output"

REASONS = {
    r"tests/http/test_fixes\.py::test_interrupted_initialize_cleans_up_agent\[True\]": ANSWERS,
    r"tests/http/test_websocket\.py::test_asgi_websocket_cleans_up_running_prompt\[.*": PATIENCE,
    r"tests/test_connection_recovery\.py::.*": PRIVATE,
    r"tests/test_gen_all\.py.*": GENERATOR,
    r"tests/test_request_cancellation\.py::test_cancel_request_before_the_handler_starts_.*\[None\]": ID,
    r"tests/test_request_cancellation\.py::test_cancel_request_before_the_handler_starts_.*": STARTS,
    r"tests/test_request_cancellation\.py::test_cancel_request_with_a_matching_request_id_cancels\[None\]": ID,
    r"tests/test_request_cancellation\.py::test_cancel_request_without_a_matching_request_id_is_ignored\[.*": ID,
    r"tests/test_request_cancellation\.py::test_close_cancels_a_blocked_response_send": PATIENCE,
    r"tests/test_request_cancellation\.py::test_close_does_not_reply_to_in_flight_requests": ANSWERS,
    r"tests/test_request_error_logging\.py::.*": PRIVATE,
    r"tests/test_rpc\.py::test_cancelled_request_is_removed_from_pending_map": PRIVATE,
    r"tests/test_rpc\.py::test_ignore_invalid_messages": (
        "it expects silence about a message that is none; JSON-RPC wants an error, and our engine sends it"
    ),
    r"tests/test_v2_runtime\.py::test_cancel_request_before_the_handler_starts_still_replies": STARTS,
}
"""The tests that cannot pass, as patterns of their names, and why."""


@dataclass(frozen=True)
class Outcome:
    """What came of a run of the SDK's tests."""

    passed: frozenset[str]
    failed: frozenset[str]
    skipped: frozenset[str]


def reason_of(name: str) -> str | None:
    """Why this test cannot pass on our engine; None if it should."""
    return next((why for pattern, why in REASONS.items() if re.fullmatch(pattern, name)), None)


def package(release: str) -> Path:
    """A folder with this release of the SDK to import; raises Unavailable if it cannot be fetched."""
    folder = cache_folder() / f"official-sdk-package-{release}"
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", "."]
    install(folder, [*pip, f"agent-client-protocol=={release}"])
    return folder


def source(release: str) -> Path:
    """The folder of this release's source package; raises Unavailable if it cannot be fetched."""
    folder = cache_folder() / f"official-sdk-{release}"
    folder.mkdir(parents=True, exist_ok=True)
    fetch = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", "."]
    install(folder, [sys.executable, *fetch, f"agent-client-protocol=={release}"])
    name = f"agent_client_protocol-{release}"
    if not (folder / name).exists():
        with tarfile.open(folder / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return folder / name


def environment(release: str, *folders: Path) -> dict[str, str]:
    """Variables in which programs find this release, and ours."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, [package(release), *ROOT.glob("packages/*/src"), *folders])),
    }


START_WITHIN_TWO_SECONDS = ("tests/real_user/test_stdio_limits.py",)
"""Files of the SDK's tests that allow a program two seconds from its start to its end: a busy machine needs more."""


def run_tests(release: str, folder: Path, *, on_ours: bool = True, only: Collection[str] = ("tests",)) -> Outcome:
    """Run the SDK's own tests in this folder, or only these, on our engine or on theirs."""
    for part in ("tests", "examples", "scripts", "schema"):
        if (source(release) / part).exists():
            shutil.copytree(source(release) / part, folder / part, dirs_exist_ok=True)
    for name in START_WITHIN_TWO_SECONDS:
        if (test := folder / name).exists():
            test.write_text(test.read_text("utf-8").replace("timeout=2\n", "timeout=60\n"), "utf-8")
    (folder / "conftest.py").write_text(CONFTEST)
    report = folder / "report.xml"
    quiet = ["-q", "-p", "no:cacheprovider", "--rootdir", ".", "--timeout", "60", f"--junitxml={report}"]
    settings = ["-o", "asyncio_mode=strict", "-o", "asyncio_default_fixture_loop_scope=function"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *settings, "--continue-on-collection-errors", *only],
        cwd=folder,
        env={**environment(release, folder), "ON_OUR_ENGINE": "1" if on_ours else ""},
        check=False,
        capture_output=True,
        timeout=600,
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


def on_our_engine(agent: RealAgent) -> RealAgent:
    """The same agent, unchanged, with our engine in the SDK's connections."""
    program = agent.command[1:] if agent.command[0] == "{bin}/python" else agent.command

    def settings(url: str, home: Path) -> Mapping[str, str]:
        path = os.pathsep.join(map(str, [*ROOT.glob("packages/*/src"), our_dependency(home)]))
        return {**agent.settings(url, home), "PYTHONPATH": path}

    start = ("{bin}/python", "-m", "accord_adapters.official_sdk")
    return dataclasses.replace(agent, command=(*start, *program), settings=settings)


def our_dependency(home: Path) -> Path:
    """A folder with what Accord needs: these agents' environments have the SDK, and not our dependency."""
    folder = home / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "msgspec"
    if not link.exists():
        link.symlink_to(Path(msgspec.__file__).parent, target_is_directory=True)
    return folder


AGENTS = {agent.name: on_our_engine(agent) for agent in (PYDANTIC, DEEPAGENTS, HERMES)}


def main() -> None:
    """Run the tests, and print what came of them."""
    for release in TESTED:
        with TemporaryDirectory() as scratch:
            outcome = run_tests(release, Path(scratch))
        print(f"{release}: {len(outcome.passed)} passed, {len(outcome.failed)} failed, {len(outcome.skipped)} skipped")
        for name in sorted(outcome.failed):
            print(f"  {name}: {reason_of(name) or 'NO REASON'}")


if __name__ == "__main__":
    main()
