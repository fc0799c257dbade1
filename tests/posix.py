"""Modules of Python that only POSIX systems have.

A test file that imports `fcntl` itself cannot be collected on Windows, not even for its tests that need no such module.
It imports the module from here. Where the module is missing, the first use of it skips the test.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, NoReturn

NAMES = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")


class Missing:
    """Stands in for a module that this system does not have."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__"):  # pytest looks for such members while it collects
            raise AttributeError(attribute)
        import pytest  # programs that tests start import this file as well

        pytest.skip(f"needs {self._name}.{attribute}, which only POSIX systems have")


def module_or_stand_in(name: str) -> ModuleType | Missing:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return Missing(name)


fcntl: Any
pty: Any
pwd: Any
resource: Any
termios: Any
tty: Any
fcntl, pty, pwd, resource, termios, tty = map(module_or_stand_in, ("fcntl", "pty", "pwd", "resource", "termios", "tty"))
