"""Names of a package that are loaded when they are first used (PEP 562).

`accord` and `accord.http` have many names, and a program needs few of them: it pays for the
modules of those. Type checkers see ordinary imports under `TYPE_CHECKING`; at run time a table says which module has
which name. A test compares the two.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def homes_of(modules: Mapping[str, str]) -> dict[str, str]:
    """The home of each name, from a table by module: `{"engine.peer": "Context Peer"}`.

    `name=other` is a name that the module calls otherwise, and `name:` is the module of that name itself.
    """
    homes: dict[str, str] = {}
    for module, names in modules.items():
        for word in names.split():
            name, _, other = word.rstrip(":").partition("=")
            homes[name] = f"{module}.{word}".strip(".") if word.endswith(":") else f"{module}:{other or name}"
    return homes


def on_first_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package, for these names and where each is.

    A home is a module of the package (`errors`), or that and the name's other name there (`engine.peer:Peer`);
    with nothing behind the colon (`http:`) it is the module itself. One that begins with a dot is a module beside the
    package.
    """

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = home.partition(":")
        try:
            loaded = importlib.import_module(f".{module}", package)
        except ImportError as error:
            from accord.installation import extra_of, missing_extra

            if (extra := extra_of(error)) is None:
                raise
            raise missing_extra(extra, f"{package}.{name}") from error
        value = loaded if home.endswith(":") else getattr(loaded, attribute or name)
        vars(sys.modules[package])[name] = value  # the next time it is an ordinary attribute
        return value

    return load
