"""Environments that have nothing but what a test installs: each Python that is supported, and Accord's wheel."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.build import Unavailable

from interop import toad

UV = Path(sys.executable).with_name("uv")
PATIENCE = 500
OURS = ("ACCORD_", "PYTHON", "VIRTUAL_ENV", "XDG_", "PYTEST")
"""Variables of the tests that would reach into an environment."""


def interpreter(version):
    """A program of this version of Python; skips the test where there is none."""
    for program in candidates(version):
        if program and answers(program, version):
            return str(program)
    if tuple(map(int, version.split("."))) >= toad.PYTHON:
        try:
            if answers(fetched := toad.interpreter(), version):
                return fetched
        except Unavailable as missing:
            pytest.skip(str(missing))
    pytest.skip(f"Python {version} is not installed")


def candidates(version):
    yield sys.executable
    yield shutil.which(f"python{version}")
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(home.glob(f"versions/{version}.*/bin/python"))


def answers(program, version):
    """Whether a program runs, which a name on the path need not, and is of this version."""
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([program, "-c", question], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


class Environment:
    """A virtual environment in a folder, and a folder to work in that has nothing of ours."""

    def __init__(self, folder, python=sys.executable):
        self.folder = folder
        self.bin = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
        self.python = self.bin / "python"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        self.variables |= {"HOME": str(self.home), "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
        self.variables |= {"UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))}
        succeeded(self.ran([python, "-m", "venv", "--without-pip", str(folder / "env")]))

    def ran(self, command, stdin=""):
        """What a command did; its programs are first those of the environment."""
        variables = {**self.variables, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.run(
            list(map(str, command)),
            cwd=self.home,
            env=variables,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def install(self, wheels, package="accord", extra=""):
        """Install the wheels and what they need, one with an extra, from the index of this machine."""
        wanted = [f"{wheel}[{extra}]" if extra and name == package else str(wheel) for name, wheel in wheels.items()]
        succeeded(self.ran([UV, "pip", "install", "--quiet", "--python", self.python, *wanted]))
        succeeded(self.ran([UV, "pip", "check", "--python", self.python]))

    def install_offline(self, wheels):
        """Install the wheels, and the core's one dependency as a copy of the tests' own, so that no index is needed."""
        pip = [sys.executable, "-m", "pip", "--python", self.python]
        succeeded(self.ran([*pip, "install", "--quiet", "--no-deps", "--no-index", *wheels]))
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        place = Path(succeeded(self.ran([self.python, "-c", where])).strip())
        for file in importlib.metadata.distribution("msgspec").files:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), place / file)


def succeeded(done):
    """The output of a command that worked; otherwise the test fails with all that it said."""
    assert done.returncode == 0, f"{done.args} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
