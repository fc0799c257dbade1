"""The modules stand in an order, and each imports only from modules above it. No modules import each other in a circle.

Imports for type checkers count like all others: a circle that only a checker sees is still a circle for the reader.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

ORDER = """
accord.byte_sizes accord.deprecation accord.folders accord.light_event accord.masking accord.own_commands
accord.printable accord.signals accord.suggestions
accord.endpoints accord.last_lines accord.fences accord.windows accord.file_uris
accord.errors accord.consent
accord.extras
accord.loading
accord.jsonrpc.frames accord.jsonrpc.bounds
accord.jsonrpc.members
accord.jsonrpc.messages accord.jsonrpc.endpoint
accord.jsonrpc.slices
accord.jsonrpc.glance
accord.schema.base
accord.schema.keeping
accord.schema.hints accord.schema.legacy
accord.schema.tolerant
accord.schema.codec
accord.schema.sendable
accord.schema.v1
accord.arguments
accord.schema.v2
accord.schema.methods
accord.schema.describe accord.schema.conversion
accord.transports accord.redaction
accord.trace accord.tasks accord.overdue accord.engine.routes
accord.private_sockets
accord.calling
accord.engine.intake accord.engine.lanes accord.engine.gate
accord.engine.backlog accord.engine.aside
accord.engine.limits
accord.engine.outbox accord.engine.owed
accord.engine.held_requests
accord.engine.answering accord.engine.asking
accord.engine.receiving
accord.engine.connection
accord.capabilities accord.spans accord.running accord.engine.trace_context
accord.engine.peer
accord.engine.context
accord.engine.incoming
accord.engine.interceptors
accord.engine.handlers
accord.testing
accord.placeholders accord.sizes accord.own_files accord.tap accord.metrics
accord.text accord.documents
accord.state
accord.store accord.services
accord.mcp
accord.agent
accord.agent.negotiation
accord.agent.voices
accord.agent.asks accord.agent.cancellations accord.agent.content accord.agent.declared accord.agent.forms
accord.agent.paths accord.agent.plans accord.agent.router
accord.agent.plan
accord.agent.subagent_updates accord.agent.told_errors
accord.agent.entries
accord.agent.survey
accord.agent.folded_record
accord.agent.replay_v1 accord.agent.replay_v2
accord.agent.replay
accord.agent.retelling
accord.agent.prompt_queue accord.agent.providers accord.agent.record accord.agent.store_errors
accord.agent.system_prompt
accord.agent.following
accord.agent.watching
accord.agent.connected_client accord.agent.permission accord.agent.updates
accord.agent.activity accord.agent.adapted accord.agent.background accord.agent.commands accord.agent.compaction
accord.agent.config_options accord.agent.remote_terminal accord.agent.sent_message
accord.agent.terminal_text accord.agent.tool_life
accord.agent.config
accord.agent.remote_client
accord.agent.files accord.agent.tool_command
accord.agent.elicitation
accord.agent.login accord.agent.tool accord.agent.suggestions
accord.agent.mcp
accord.agent.session
accord.agent.open_session
accord.agent.open_sessions accord.agent.running_turn
accord.agent.lifecycle
accord.agent.auth_status accord.agent.catalogue accord.agent.subagent
accord.agent.turn
accord.agent.definition accord.agent.functions accord.agent.insertion accord.agent.work
accord.agent.second_version
accord.agent.connection
accord.agent.agent
accord.client
accord.confinement
accord.http accord.connection_block
accord.hosts
accord.agent_file accord.registry
accord.configuration
accord.connecting
accord.proxy
accord.opening accord.extensions
accord.sync accord.check
accord.inspector
accord.pictures
accord.tui
accord.demo accord.coder
accord.adapters
accord.pytest_plugin
accord.inspector
accord.compat
accord.cli
accord.__main__
""".split("\n")
ONLY_NAMED = {"accord.agent.session": {"accord.agent.turn"}}  # `session.work()` gives a turn, which has a session
"""What a module names for type checkers and never loads, although it is below."""

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
    """What a module imports, for type checkers as well; imports inside functions are not followed."""
    path = SOURCE / Path(*module.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    found: set[str] = set()
    for node in statements(tree.body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in ALL else node.module for name in names}
    others = {name for name in found if name.split(".")[0] == "accord" and name not in PACKAGES and name != module}
    return others - ONLY_NAMED.get(module, set())


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """A module's statements, and those of its `if` blocks, such as `if TYPE_CHECKING`."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from statements(node.body)
            yield from statements(node.orelse)


def circles() -> list[set[str]]:
    """The groups of modules in which each imports every other, directly or through others of the group."""
    # A package imports its modules to give their names; that is what it is for.
    packages = {module for module in ALL if (SOURCE / Path(*module.split("."))).is_dir()}
    imports = {module: (imports_of(module) & ALL) - packages for module in ALL - packages}
    reached = {module: reachable(module, imports) for module in imports}
    groups = {frozenset(other for other in reached[module] if module in reached[other]) for module in imports}
    return sorted((set(group) for group in groups if group), key=min)


def reachable(module: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(imports[module])
    while waiting:
        if (other := waiting.pop()) not in found:
            found.add(other)
            waiting += imports[other]
    return found


ALL = set(modules())


@pytest.mark.parametrize("module", sorted(ALL - PACKAGES))
def test_a_module_imports_only_from_above(module):
    entry = home(module)
    assert entry is not None, f"{module} is not in the order: add it to ORDER"
    for imported in imports_of(module):
        other = home(imported)
        assert other is not None, imported
        assert other == entry or LEVELS[other] < LEVELS[entry], f"{module} imports {imported}, which stands below it"


def test_no_modules_import_each_other_in_a_circle():
    assert circles() == []


def test_no_module_has_a_name_that_says_nothing():
    refused = {"utils", "helpers", "core", "manager", "common", "misc"}
    # The modules of accord.compat.acp are called what those of the official SDK are called.
    ours = [module for module in ALL if not module.startswith("accord.compat.acp.")]
    assert not [module for module in ours if module.split(".")[-1] in refused]
