"""Toad, an editor-side client in a terminal that nobody here wrote: where it comes from; `toad_screen` is what it does.

It wants a newer Python than most machines have: where there is none, one comes through Go's module proxy.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.peers import Peer, fill

from interop.peers import had

VERSION = "0.6.20"
PYTHON = (3, 14)
NAMES = ("python3.14", "python3.15", "python3")

FETCHED = Peer(
    name="toad-python",
    package="github.com/kluctl/go-embed-python",
    version="3.14.6",
    language="Go",
    agent=("{build}/python/bin/python3",),
    client=(),
    files={"../interop/pins/python.mod": "go.mod", "../interop/pins/python.go": "main.go"},
    steps=(("go", "run", "-mod=mod", ".", "{build}/python"),),
    tools=("go",),
    install="Python 3.14 or later, or Go 1.26 or later, which fetches one",
)


def installed() -> Path:
    """Its program; raises Unavailable with a line that says what to install."""
    python = interpreter()
    pip = ("{python}", "-m", "pip", "--python", "{venv}", "install", "--quiet", "--disable-pip-version-check")
    toad = Peer(
        name="toad",
        package="batrachian-toad",
        version=VERSION,
        language="Python",
        agent=("{venv}",),
        client=(),
        steps=(
            (python, "-m", "venv", "--clear", "--without-pip", "{build}/venv"),
            (*pip, f"batrachian-toad=={VERSION}"),
        ),
        install="Python 3.14 or later",
    )
    return Path(fill(toad.agent, had(toad).folder)[0]).with_name("toad")


def interpreter() -> str:
    """A Python that is new enough: this one, one on the path, or one that is fetched."""
    for name in (sys.executable, *NAMES):
        if (found := shutil.which(name)) and new_enough(found):
            return found
    return fill(FETCHED.agent, had(FETCHED).folder)[0]


def new_enough(python: str) -> bool:
    """Whether it runs, which what is found on the path need not, and is of that version."""
    question = f"import sys; sys.exit(sys.version_info < {PYTHON})"
    return subprocess.run([python, "-c", question], capture_output=True, check=False).returncode == 0
