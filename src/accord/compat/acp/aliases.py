"""Puts our modules in place of the package `acp`, for programs that cannot be changed."""

from __future__ import annotations

import importlib
import pkgutil
import sys

PACKAGE = "accord.compat.acp"
NAME = "acp"


def install() -> None:
    """Let `import acp` give our modules from now on; raises RuntimeError if the official package was imported."""
    loaded = sys.modules.get(NAME)
    if loaded is not None and loaded.__name__ != PACKAGE:
        raise RuntimeError(f"{NAME} was imported already: call accord.compat.acp.aliases.install() before that")
    package = importlib.import_module(PACKAGE)
    sys.modules[NAME] = package
    for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        if not module.name.endswith((".__main__", ".aliases")):
            sys.modules[NAME + module.name.removeprefix(PACKAGE)] = importlib.import_module(module.name)
