"""The tools, the checker and the adapters import public modules of the library only."""

import ast
import importlib
import tomllib
from pathlib import Path

import pytest

from tests import PACKAGES, ROOT

PUBLIC = set(tomllib.loads((ROOT / "packages" / "accord" / "public-modules.toml").read_text())["public"])
LIBRARY = ROOT / "packages" / "accord" / "src"


def is_module(name: str) -> bool:
    path = LIBRARY.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def modules_of(text: str) -> set[str]:
    """The modules of the library that a program imports, or imports from."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {it.name for it in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{it.name}" for it in node.names if is_module(f"{node.module}.{it.name}")}
            others = [it for it in node.names if f"{node.module}.{it.name}" not in submodules]
            found |= submodules | ({node.module} if others else set())
    return {it for it in found if it.startswith("accord.")}


@pytest.fixture(scope="module")
def used() -> dict[str, set[str]]:
    """The modules of the library that products import, and the files that do."""
    found: dict[str, set[str]] = {}
    for package in PACKAGES:
        for path in Path(package, "src").rglob("*.py"):
            if package.name != "accord":
                for module in modules_of(path.read_text()):
                    found.setdefault(module, set()).add(str(path.relative_to(package)))
    return found


def test_products_import_public_modules_only(used):
    private = {module: sorted(files) for module, files in used.items() if module not in PUBLIC}
    assert private == {}, "use the names of accord, or make the module public in packages/accord/public-modules.toml"


@pytest.mark.parametrize("module", sorted(PUBLIC))
def test_a_public_module_says_what_it_is_for(module):
    assert (importlib.import_module(module).__doc__ or "").strip()


@pytest.mark.parametrize(
    ("program", "modules"),
    [
        ("import accord.trace", {"accord.trace"}),
        ("from accord import Agent, connect", set()),
        ("from accord import trace", {"accord.trace"}),
        ("from accord.schema import codec", {"accord.schema.codec"}),
        ("def f():\n    from accord.trace.query import Term", {"accord.trace.query"}),
    ],
)
def test_an_import_is_found(program, modules):
    assert modules_of(program) == modules
