"""The reproductions in `faults/`: how each is run, and what it says that it prints. None of our code is in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from interop.peers import GO_SDK, built
from interop.real_agents import GEMINI, PYDANTIC, command, installed, node_programs

FAULTS = Path(__file__).resolve().parent / "faults"
PRINTS = "Prints: "
SECONDS = 300


def faults() -> list[str]:
    return sorted(path.name for path in FAULTS.iterdir() if path.suffix in (".go", ".py"))


def promised(fault: str) -> str:
    """What it says that it prints."""
    lines = (FAULTS / fault).read_text().splitlines()
    return next(line.partition(PRINTS)[2] for line in lines if PRINTS in line)


def printed(fault: str, folder: Path) -> str:
    """What it prints, run in this folder; raises Unavailable with a line that says what is missing."""
    program, environment, place = str(FAULTS / fault), {**os.environ, "TMPDIR": str(folder)}, folder
    if fault.startswith("go_"):
        # Where the SDK is required already.
        place = built(GO_SDK.name).folder
        tokens = ["go", "run", "-mod=mod", program]
    elif fault.startswith("gemini_"):
        tokens = [sys.executable, program, *command(GEMINI, folder)]
        environment["PATH"] = f"{node_programs()}{os.pathsep}{environment['PATH']}"
    elif fault.startswith("pydantic_"):
        tokens = [str(installed(PYDANTIC) / "python"), program]
    else:
        raise ValueError(f"nobody knows how to run {fault}")
    done = subprocess.run(
        tokens, cwd=place, env=environment, input="", capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return done.stdout.strip() or done.stderr.strip()
