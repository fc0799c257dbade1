"""What `import accord` gives, and what it costs."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import accord

PUBLIC = """
__version__ AccordError Capabilities CapabilityMissing Connection ConnectionClosed Context DecodeError EncodeError
TraceEvent Handlers TraceFile Limits McpServerError MemoryTransport Model Notification Overflow Peer PeerError
ProcessTransport ProtocolError Request RequestError Spans Statistics StdioTransport Timeout Unknown memory_pair run v1
updates v2 Agent RemoteClient Session Turn MemoryStore SqliteStore Store StoreError Elicitation Files FormQuestion
ServedSession LinkQuestion Permissions PermissionPolicy RememberedAnswers Service Terminal TerminalUser Terminals
ConfigurationError load_mcp_servers Budget BudgetQuestion Client Outcome PermissionQuestion RemoteAgent RemoteSession
Reply Restart Restarted ask connect open sync tools ToolServer CommandResult Decision Elicited ElicitedUrl Login
RemoteTerminal Tool TurnPlan http MirroredDocument SuggestionRequest Endpoint Provider Subagent RemoteSubagent
RunningCompaction PlanDocument OpenDocument StaleSuggestion Suggestion Suggestions Chain chain Hop Proxy PostgresStore
SentMessage Hosts Target CommandTarget ModelAnswer ModelCall ModelUsage OutputError TypedReply AgentSkill
Extension MetaMember
""".split()

EXTRAS = {
    "rich",
    "textual",
    "hpack",
    "h11",
    "websockets",
    "asyncpg",
    "anthropic",
    "openai",
    "keyring",
    "mcp",
    "opentelemetry",
    "uvloop",
    "typer",
    "pydantic",
    "pydantic_ai",
}


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_public_names_are_these():
    assert sorted(accord.__all__) == sorted(PUBLIC)


def test_every_public_name_is_there():
    for name in accord.__all__:
        assert getattr(accord, name) is not None
    assert set(accord.__all__) <= set(dir(accord))


def test_no_module_of_http_takes_the_name_of_what_it_gives():
    folder = Path(accord.http.__file__).parent
    assert not {path.stem for path in folder.glob("*.py")} & set(accord.http.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    assert not hasattr(accord, "Agnet")


def test_import_accord_loads_no_extra_and_not_even_asyncio():
    loaded = loaded_by("import accord")
    assert not loaded & EXTRAS
    assert "asyncio" not in loaded
    assert "msgspec" not in loaded


def test_the_whole_library_loads_no_extra():
    loaded = loaded_by("import accord\nfor name in accord.__all__: getattr(accord, name)")
    assert not loaded & EXTRAS


def test_the_first_version_alone_does_not_load_the_second():
    script = (
        "import sys, accord.engine.peer; print([name for name in sys.modules if name.startswith('accord.schema.v2')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def names_for_checkers(module: ModuleType) -> dict[str, str]:
    """The names that type checkers see in a package, and the module that each is imported from."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {str(name.asname): str(node.module) for node in imports for name in node.names}


def test_a_topic_of_the_protocol_is_loaded_when_it_is_first_used():
    script = (
        "import sys; from accord import Agent, v1; print('accord.schema.v1_nes' in sys.modules); "
        "v1.StartNesRequest; print('accord.schema.v1_nes' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_type_checkers_see_the_public_names_where_they_are():
    for name, home in names_for_checkers(accord).items():
        if not name.startswith("_"):
            module = importlib.import_module(home)
            assert getattr(accord, name) is getattr(module, name)


def test_an_agent_that_has_answered_initialize_has_loaded_little_else():
    script = """
import sys, accord

agent = accord.Agent("idle")

@agent.on_prompt
async def idle(turn: accord.Turn) -> None: ...

agent.run()
print(*sorted(sys.modules), file=sys.stderr)
"""
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run([sys.executable, "-c", script], input=hello, capture_output=True, check=True)
    assert b'"protocolVersion":1' in done.stdout
    loaded = set(done.stderr.decode().split())
    used_by_few = {
        "accord.agent.form_schema",
        "accord.agent.session_mcp",
        "accord.agent.workspace",
        "accord.mcp.mcp_server",
        "accord.schema.v2",
        "accord.services.form_fields",
        "accord.services.file_service",
        "accord.services.terminal_service",
        "accord.engine.spans",
        "accord.trace.trace_file",
        "asyncpg",
        "dataclasses",
        "hashlib",
        "shlex",
        "shutil",
        "sqlite3",
    }
    assert not loaded & used_by_few
