"""The modules stand in an order, and each imports only from what is above it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

ORDER = """
accord.loading accord.errors accord.masking accord.printable
accord.requirements
accord.jsonrpc.frames accord.jsonrpc.bounds
accord.jsonrpc.members
accord.jsonrpc.messages accord.jsonrpc.endpoint
accord.schema.base
accord.schema.hints accord.schema.legacy
accord.schema.tolerant
accord.schema.codec
accord.schema.v1
accord.schema.v2
accord.schema.methods
accord.schema.describe accord.schema.conversion
accord.transports accord.redaction
accord.trace accord.tasks accord.engine.routes
accord.engine.intake accord.engine.lanes accord.engine.gate
accord.engine.backlog
accord.engine.limits
accord.engine.outbox
accord.engine.answering accord.engine.asking
accord.engine.connection
accord.capabilities accord.spans accord.running
accord.engine.handlers
accord.engine.peer
accord.testing
accord.sizes
accord.text
accord.state
accord.store accord.services
accord.mcp
accord.agent accord.client
accord.http
accord.connecting
accord.demo
accord.cli
accord.__main__
""".split("\n")
LEVELS = {module: level for level, line in enumerate(ORDER) for module in line.split()}
PACKAGES = {
    "accord",
    "accord.engine",
    "accord.jsonrpc",
    "accord.schema",
}  # only docstrings, and the lazy table of public names


def modules() -> list[str]:
    paths = sorted((SOURCE / "accord").rglob("*.py"))
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in paths]


def home(module: str) -> str | None:
    """The entry of the order that this module belongs to."""
    return max((entry for entry in LEVELS if module == entry or module.startswith(entry + ".")), key=len, default=None)


def imports_of(module: str) -> set[str]:
    """What a module imports when it runs; imports for type checkers and inside functions are not followed."""
    path = SOURCE / Path(*module.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in ALL else node.module for name in names}
    return {name for name in found if name.split(".")[0] == "accord" and name not in PACKAGES}


ALL = set(modules())


@pytest.mark.parametrize("module", sorted(ALL - PACKAGES))
def test_a_module_imports_only_from_above(module):
    entry = home(module)
    assert entry is not None, f"{module} is not in the order: add it to ORDER"
    for imported in imports_of(module):
        other = home(imported)
        assert other is not None, imported
        assert other == entry or LEVELS[other] < LEVELS[entry], f"{module} imports {imported}, which stands below it"


def test_no_module_has_a_name_that_says_nothing():
    refused = {"utils", "helpers", "core", "manager", "common", "misc"}
    assert not [module for module in ALL if module.split(".")[-1] in refused]
