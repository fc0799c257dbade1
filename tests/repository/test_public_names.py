"""What `import accord` gives, and what it costs."""

import subprocess
import sys
from pathlib import Path

import accord

PUBLIC = """
__version__ AccordError Capabilities CapabilityMissing Connection ConnectionClosed Context DecodeError EncodeError Event
Handlers JsonLines Limits McpServerError MemoryTransport Model Notification Overflow Peer PeerError ProcessTransport
ProtocolError Request RequestError Spans Statistics StdioTransport Timeout Unknown memory_pair run v1 v2
Agent RemoteClient Session Turn
MemoryStore SqliteStore Store StoreError
Elicitation Files FormQuestion HostedSession LinkQuestion Permissions Policy RememberedAnswers Service
TerminalUser Terminals
ConfigurationError load_mcp_servers
Client Outcome PermissionQuestion RemoteAgent RemoteSession Reply Restart Restarted connect
CommandResult Decision Elicited ElicitedUrl Login RemoteTerminal Tool TurnPlan
http
""".split()

EXTRAS = {
    "rich",
    "textual",
    "hypercorn",
    "h2",
    "h11",
    "websockets",
    "mcp",
    "opentelemetry",
    "uvloop",
    "typer",
    "pydantic",
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


def test_a_function_is_not_hidden_by_the_module_of_its_name():
    loaded_by("import accord, accord.run, accord.connect; assert callable(accord.run) and callable(accord.connect)")


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
    script = "import sys, accord.dispatch; print([name for name in sys.modules if name.startswith('accord.schema.v2')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
