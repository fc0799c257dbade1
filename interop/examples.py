"""The agents of `examples/` as commands that any client can be started with; `{data}` is a folder that stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from interop.frameworks import PACKAGES, python_with

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
MODELS = ROOT / "tests" / "examples" / "models"
FRAMEWORKS = sorted(PACKAGES)


def example(name: str, *arguments: str, **variables: str) -> list[str]:
    return started([sys.executable, str(EXAMPLES / name), *arguments], **variables)


def framework_example(framework: str) -> list[str]:
    """That framework's example, with a model that follows a script; raises Unavailable where there is no framework."""
    program = [python_with(framework), str(MODELS / f"scripted_{framework}.py"), str(EXAMPLES / "frameworks")]
    return started(program, STORE="{data}/store.db")


def started(program: list[str], **variables: str) -> list[str]:
    """With its variables in the command: not every client hands variables of ours on to an agent."""
    variables = {"PYTHONPATH": os.pathsep.join(map(str, ROOT.glob("packages/*/src"))), **variables}
    return ["env", *(f"{name}={value}" for name, value in variables.items()), *program]
