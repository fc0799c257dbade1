"""Plug-ins: what other distributions add, and what a broken one breaks; the examples, installed and used."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

import accord
from accord.client.connect import target_of
from accord.http import UrlTarget
from accord.installation import OWN, PluginError, load_plugin, plugins, scheme_of
from accord.proxy.chain import read_component
from accord.store.store_url import store_at

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution of one module: the files that pip would leave, in a folder of `sys.path`."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    plugins.cache_clear()
    names = []

    def install(name, points, code=""):
        names.append(name)
        information = folder / f"{name}-1.5.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        (information / "entry_points.txt").write_text(points)
        (folder / f"{name}.py").write_text(code)

    yield install
    plugins.cache_clear()
    for name in names:
        sys.modules.pop(name, None)


FINDER = """
from accord.transports import CommandTarget

def find(word, *, env, **options):
    return CommandTarget([NAME, word], env=env) if word in KNOWN else None
"""


def test_a_bare_word_is_asked_of_all_finders_in_the_order_of_their_names(install):
    install("later", "[accord.agents]\nz = later:find", f"NAME, KNOWN = 'z', ('both', 'rare')\n{FINDER}")
    install("sooner", "[accord.agents]\na = sooner:find", f"NAME, KNOWN = 'a', ('both',)\n{FINDER}")
    assert target_of("both", env={"LANG": "C"}).command == ["a", "both"]
    assert target_of("both", env={"LANG": "C"}).env == {"LANG": "C"}
    assert target_of("rare").command == ["z", "rare"]
    assert target_of("none").command == ["none"]
    assert target_of(["both"]).command == ["both"]
    assert target_of("both --acp").command == ["both", "--acp"]


def test_a_component_of_a_chain_is_a_program_before_it_is_an_agent_with_a_name(install):
    program = Path(sys.executable).name
    install("finder", "[accord.agents]\na = finder:find", f"NAME, KNOWN = 'a', ('mine', {program!r})\n{FINDER}")
    assert read_component("mine").command == ["a", "mine"]
    assert read_component(f" {sys.executable} ").command == [sys.executable]
    assert read_component('{"command": "mine", "args": ["x"]}').command == ["mine", "x"]
    assert read_component("rules.py --strict").command[1:] == ["-P", "-m", "accord.agent_file", "rules.py", "--strict"]
    assert isinstance(read_component("https://agents.example/acp"), UrlTarget)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("find = 3", "TypeError: 'int' object is not callable"),
        ("def find(word, **options): raise KeyError('oops')", "KeyError: 'oops'"),
    ],
)
def test_a_broken_finder_is_named_in_a_warning_and_the_others_are_asked(install, code, problem):
    install("broken", "[accord.agents]\na = broken:find", code)
    install("sound", "[accord.agents]\nb = sound:find", f"NAME, KNOWN = 'b', ('mine',)\n{FINDER}")
    with pytest.warns(UserWarning, match="the distribution broken 1.5") as caught:
        assert target_of("mine").command == ["b", "mine"]
    assert problem in str(caught[0].message)


def test_what_a_finder_raises_on_purpose_is_the_error_of_connect(install):
    code = "import accord\ndef find(word, **_): raise accord.ConfigurationError(f'{word} is not trusted')"
    install("strict", "[accord.agents]\na = strict:find", code)
    with pytest.raises(accord.ConfigurationError, match="mine is not trusted"):
        target_of("mine")


def test_a_finder_that_returns_something_else_is_named(install):
    install("wrong", "[accord.agents]\na = wrong:find", "def find(word, **_): return [word]")
    with pytest.raises(PluginError, match=r"'a' of accord.agents .*wrong 1.5.* must return a Target or None, got list"):
        target_of("mine")


def test_metadata_that_cannot_be_read_breaks_no_other_plug_in(install):
    install("damaged", "[accord.agents]\nthis is no entry point")
    install("sound", "[accord.agents]\nb = sound:find", f"NAME, KNOWN = 'b', ('mine',)\n{FINDER}")
    with pytest.warns(UserWarning, match="cannot read the entry points of damaged"):
        assert target_of("mine").command == ["b", "mine"]


TRANSPORT = """
from accord.transports import CommandTarget

def dial(url, *, token, cwd, env, inherit, headers, proxy, on_stderr):
    return CommandTarget(["dial", url, token])
"""


def test_a_transport_gets_the_url_and_all_options(install):
    install("far", "[accord.transports]\nfar+tls = far:dial", TRANSPORT)
    assert target_of("FAR+TLS://host/x", token="t").command == ["dial", "FAR+TLS://host/x", "t"]


def test_a_scheme_that_nobody_has_registered_names_those_that_are_known(install):
    install("far", "[accord.transports]\nfar = far:dial\n[accord.stores]\nfar = far:dial", TRANSPORT)
    with pytest.raises(PluginError) as raised:
        target_of("htps://agents.example/acp")
    assert str(raised.value) == (
        "no plug-in for htps:// is installed; known are far://, http://, https://, ws://, wss://; "
        "others come with distributions that register an entry point in the group accord.transports"
    )
    with pytest.raises(PluginError, match=r"no plug-in for redis:// .*known are far://, memory://, postgres://"):
        accord.Agent("a", store="redis://password@db")


def test_a_broken_plug_in_for_a_scheme_breaks_that_scheme_alone(install):
    install("broken", "[accord.stores]\na1 = broken:x\n[accord.transports]\na1 = broken:x", "x = 1 / 0")
    install("wrong", "[accord.stores]\na2 = wrong:x\n[accord.transports]\na2 = wrong:x", "def x(url, **_): return 3")
    for at in target_of, store_at:
        with pytest.raises(PluginError, match=r"distribution broken 1.5\) cannot be loaded: ZeroDivisionError"):
            at("a1://x")
        with pytest.raises(PluginError, match=r"must return a (Target|Store), got int"):
            at("a2://x")
    with warnings.catch_warnings(action="error"):
        assert isinstance(store_at("memory://"), accord.MemoryStore)
        assert isinstance(target_of("wss://agents.example/"), UrlTarget)


def test_what_accord_has_itself_is_listed_loads_and_cannot_be_replaced(install):
    points = "".join(f"[{group}]\n" + "".join(f"{name} = thief:x\n" for name in names) for group, names in OWN.items())
    install("thief", points, "1 / 0")
    for group, names in OWN.items():
        assert set(names) <= set(plugins(group))
        for name in names:
            assert load_plugin(plugins(group)[name]).__module__.startswith("accord.")
    assert isinstance(target_of("https://agents.example/acp"), UrlTarget)
    assert isinstance(store_at("sqlite:///tmp/a%20b.sqlite3"), accord.SqliteStore)


def test_a_store_is_named_by_a_path_or_a_url(tmp_path):
    assert isinstance(store_at(":memory:"), accord.MemoryStore)
    assert isinstance(store_at("postgresql://db/accord"), accord.PostgresStore)
    assert store_at(f"sqlite://{(tmp_path / 'a.sqlite3').as_posix()}").path == tmp_path / "a.sqlite3"
    assert store_at("a.sqlite3").path == Path("a.sqlite3")
    with pytest.raises(ValueError, match="sqlite:// takes an absolute path"):
        store_at("sqlite://a.sqlite3")
    with pytest.raises(ValueError, match="memory:// has nothing behind it"):
        store_at("memory://a")
    with pytest.raises(TypeError, match=r"Agent\(store=\.\.\.\) takes a path, as text or a Path, got int 3"):
        accord.Agent("a", store=3)


@pytest.mark.parametrize(
    "written", ["gemini", "/bin/agent", "a://x", "C://agent.exe", "://x", "see http://x", "1a://x"]
)
def test_a_command_or_a_path_is_no_url(written):
    assert scheme_of(written) is None


def test_connecting_reads_no_metadata_unless_a_bare_word_is_given():
    script = f"""
import sys
import accord
from accord.client.connect import target_of
from accord.store.store_url import store_at
for where in ("https://a.example", "wss://a.example", "agent --acp", ["agent"], "rules.py", {sys.executable!r}):
    target_of(where)
store_at("memory://"), store_at("a.sqlite3"), store_at("postgres://db")
print("importlib.metadata" in sys.modules)
target_of("agent")
print("importlib.metadata" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_without_any_distribution_our_own_schemes_work_and_a_bare_word_is_a_command(tmp_path):
    import msgspec

    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    script = f"""
import sys
sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT / "packages" / "accord" / "src")!r}]
from accord.installation import plugins
from accord.client.connect import target_of
from accord.store.store_url import store_at
print(dict(plugins("accord.agents")), target_of("gemini").command, store_at("memory://"))
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "{} ['gemini'] MemoryStore(sessions=0)\n"


# The examples

PLUGINS = ("owner-store", "session-tickets", "team-agents", "unix-transport")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The environment of a program that has the examples of plug-ins installed."""
    folder = tmp_path_factory.mktemp("plugins")
    examples = [str(EXAMPLES / "plugins" / name) for name in PLUGINS]
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--offline"]
    python = ["--python", sys.executable, "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "uv", "pip", "install", *options, *python, *examples], check=True)
    return {**os.environ, "PYTHONPATH": str(folder)}


async def test_a_server_keeps_the_sessions_of_its_agents_in_the_example_s_store(installed, tmp_path):
    folder = tmp_path / "sessions"
    arguments = ["serve", "--port", "0", "--store", f"owners://{folder}", str(EXAMPLES / "echo_agent.py")]
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "accord", *arguments, env=installed, stdout=subprocess.PIPE
    )
    try:
        url = (await server.stdout.readline()).decode().split()[-1]
        async with accord.connect(url) as remote:
            session = await remote.new_session("/")
            assert (await session.prompt("Hello")).text == "You said: Hello"
        assert [path.name for path in folder.glob("*.sqlite3")] == ["nobody.sqlite3"]
        async with accord.connect(url) as remote:
            again = await remote.load(session.id, "/")
            assert [message.text for message in again.state.messages] == ["Hello", "You said: Hello"]
    finally:
        server.terminate()
        await server.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sockets")
def test_accord_run_reaches_an_agent_behind_a_unix_socket(installed, tmp_path):
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve():
            connection, _ = listening.accept()
            with connection:
                agent = [sys.executable, str(EXAMPLES / "echo_agent.py")]
                subprocess.run(agent, stdin=connection, stdout=connection, check=True)

        serving = threading.Thread(target=serve)
        serving.start()
        done = accord_run(installed, "Hello", "--", f"unix://{path}")
        serving.join()
    assert (done.returncode, done.stdout) == (0, "You said: Hello\n"), done.stderr
    path.unlink()
    failed = accord_run(installed, "Hello", "--", f"unix://{path}")
    assert failed.returncode != 0
    assert f"{path}: No such file or directory" in failed.stderr


def accord_run(environment, *arguments):
    command = [sys.executable, "-m", "accord", "run", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_an_agent_with_a_mistyped_scheme_is_not_added(tmp_path):
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "accord", "agents", "add", "far", "--url", "htps://agents.example"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no plug-in for htps:// is installed; known are http://" in done.stderr
    assert not list(tmp_path.rglob("agents.toml"))


def test_connect_finds_an_agent_of_the_team_by_its_name(installed, tmp_path):
    names = tmp_path / "agents.toml"
    names.write_text(
        f"echo = {[sys.executable, str(EXAMPLES / 'echo_agent.py')]!r}\nfar = 'https://agents.example/acp'\n"
    )
    script = """
import accord
from accord.client.connect import target_of
print(accord.ask("Hello", agent="echo").text, target_of("far").name)
"""
    environment = {**installed, "TEAM_AGENTS": str(names)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "You said: Hello https://agents.example/acp\n", done.stderr


TICKETS = """
import accord
from session_tickets import SetTicket, Ticket, Tickets, TicketUpdate

agent = accord.Agent("tracker", extensions=["tickets"])

@agent.on(SetTicket)
def find(request: SetTicket) -> Ticket:
    return Ticket(request.key, "Mend the gate")

@agent.on_prompt
async def work(turn: accord.Turn) -> None:
    await turn.session.extension(Tickets).send(TicketUpdate(Ticket("G-7", "Paint the gate")))
    async with turn.tool("Paint", kind="edit", meta=Tickets.commit.meta("G-7")):
        pass
    await turn.say("Done.")

if __name__ == "__main__":
    agent.run()
"""


def test_an_extension_of_another_distribution_is_used_by_both_sides_and_by_chat_inspector_and_checker(
    installed, tmp_path
):
    (tmp_path / "tracker.py").write_text(TICKETS)
    script = """
import accord
from accord.extensions import installed_extensions, notice_of
from session_tickets import SetTicket, Tickets
from tracker import agent

async def main(version):
    async with accord.connect(agent, accord.Client(extensions=["tickets"]), versions=(version,)) as remote:
        session = await remote.new_session("/")
        tickets = session.extension(Tickets)
        print(tickets.offer, (await tickets.choose("G-6")).title)
        try:
            await remote.request(SetTicket(session.id, 7))
        except accord.PeerError as error:
            print(error.code)
        notices, commits = [], []
        async for update in session.prompt("Paint it"):
            notices.append(notice_of(installed_extensions(), update))
            commits.append(Tickets.commit.of(update))
        print(next(filter(None, notices)).title, next(filter(None, commits)), tickets.summary)

for version in (1, 2):
    accord.run(main(version))
"""
    environment = {**installed, "PYTHONPATH": f"{installed['PYTHONPATH']}{os.pathsep}{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    expected = "{} Mend the gate\n-32602\nWorks on G-7 G-7 G-7 Paint the gate\n"
    assert done.stdout == 2 * expected, done.stderr
    doctor = subprocess.run(
        [sys.executable, "-m", "accord", "doctor"], env=environment, capture_output=True, text=True, check=False
    )
    assert re.search("plug-in tickets +session-tickets 0.1.0, in accord.extensions", doctor.stdout), doctor.stdout
