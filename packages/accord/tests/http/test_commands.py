"""`accord serve` and `accord bridge` as people and editors run them."""

import asyncio
import dataclasses
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import accord
from accord import v1
from accord.http import Access, ServerLimits, serving
from accord.installation import install_command
from accord.transports.process_transport import ProcessTransport
from tests.http.processes import ACCORD, accord_once, serving_process
from tests.http.talking import an_agent, editor_of, nobody_is_connected, transport_to
from tests.waiting import DEADLINE


@asynccontextmanager
async def served(*arguments, **more):
    """The URL of `accord serve`, which ends well when it is told to."""
    async with serving_process(*arguments, **more) as (process, url):
        yield url
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 0


async def test_the_built_in_agent_is_served_until_a_signal(way):
    async with served() as url, editor_of(transport_to(url, way)) as editor:
        session = await editor.open_session()
        assert (await editor.prompt(session, "hello")).stop_reason == "end_turn"
        assert editor.text(session)


async def test_accord_run_sends_the_token_of_the_environment():
    async with served(ACCORD_TOKEN="s3cret") as url:
        for token, code in (("s3cret", 0), ("wrong", 1)):
            done = await asyncio.to_thread(accord_once, "run", "hello", "--", url, ACCORD_TOKEN=token)
            assert done.returncode == code, done.stderr
            assert bool(done.stdout) == (code == 0)


async def test_an_agent_is_served_by_its_command():
    async with served("--", *ACCORD, "demo", "--pace", "0") as url, editor_of(transport_to(url, "http1")) as editor:
        session = await editor.open_session()
        assert (await editor.prompt(session, "hello")).stop_reason == "end_turn"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
async def test_a_bridge_that_cannot_write_its_output_says_so():
    async with served() as url:
        code, said = await asyncio.to_thread(asked_with_a_full_disk, "bridge", url)
    assert code == 5
    assert said == (
        "accord bridge: cannot write to standard output: No space left on device; the output is incomplete\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("ends", [True, False], ids=["input ends", "input stays open"])
def test_an_agent_that_cannot_write_its_output_says_so(ends):
    code, said = asked_with_a_full_disk("demo", ends=ends)
    assert code == 5
    assert said == "accord-demo: cannot write to standard output: No space left on device\n"


def asked_with_a_full_disk(*arguments, ends=False):
    """The exit code and standard error of a command that is asked to initialize and cannot write its answer."""
    initialize = (
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'
    )
    with Path("/dev/full").open("wb") as full:
        process = subprocess.Popen([*ACCORD, *arguments], stdin=subprocess.PIPE, stdout=full, stderr=subprocess.PIPE)
    with process, process.stdin:
        process.stdin.write(initialize)
        process.stdin.flush()
        if ends:
            process.stdin.close()
        said = process.stderr.read().decode()
        return process.wait(), said


async def test_the_token_of_the_environment_is_required():
    async with served(ACCORD_TOKEN="s3cret") as url:
        with pytest.raises(accord.ConnectionClosed, match="401"):
            async with editor_of(transport_to(url, "http1")):
                pass
        async with editor_of(transport_to(url, "http1", headers={"Authorization": "Bearer s3cret"})) as editor:
            assert await editor.open_session()


async def test_a_token_file_names_owners_and_observers(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("s3cret ada lovelace\n0ther ada lovelace observer\nown observer\n")
    headers = [{"Authorization": f"Bearer {token}"} for token in ("s3cret", "0ther", "own")]
    async with served("--token-file", str(tokens)) as url:
        one, two, three = (transport_to(url, "http1", headers=it) for it in headers)
        async with editor_of(one) as ada, editor_of(two) as guest, editor_of(three) as observer:
            session = await ada.open_session()
            assert (await ada.prompt(session, "hello")).stop_reason == "end_turn"
            load = v1.LoadSessionRequest(session, "/project", [])
            await guest.request(load, timeout=DEADLINE)
            assert guest.text(session) == ada.text(session)
            with pytest.raises(accord.PeerError, match="this token may only watch"):
                await guest.open_session()
            assert await observer.open_session()  # an owner with this name, as before
            with pytest.raises(accord.PeerError):
                await observer.request(load, timeout=DEADLINE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--host", "0.0.0.0"], "ACCORD_TOKEN"),
        (["serve", "--token-file", "/nonexistent"], "cannot read the tokens"),
        (["serve", "--key", "x"], "--certificate"),
        (["serve", "--", "http://127.0.0.1:1/acp"], "only a command can be served"),
        (["serve", "--", "no-such-program"], "program not found: no-such-program"),
        (["serve", "--port", "http"], "--port must be a number"),
        (["serve", "--port", "70000"], "--port must be between 0 and 65,535"),
        (["serve", "--grace", "-1"], "--grace must be between"),
        (["serve", "--limit", "sessions"], "NAME=NUMBER"),
        (["serve", "--limit", "clients=1"], "a name of body, opening"),
        (["serve", "--limit", "body=large"], "--limit body must be a number"),
        (["serve", "--limit", "body=0"], "must be positive"),
        (["serve", "--origin", "app.example"], "--origin must be like"),
        (["bridge", "http://127.0.0.1:1/acp", "--header", "nonsense"], "--header must be"),
        (["bridge", "http://127.0.0.1:1/acp", "--ca", "/nonexistent"], "cannot read the certificates"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(arguments, said):
    done = accord_once(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("token", ["", "  ", "\n"])
def test_an_empty_token_in_the_environment_starts_no_server(token):
    done = accord_once("serve", "--port", "0", ACCORD_TOKEN=token)
    assert done.returncode == 2
    assert "ACCORD_TOKEN is set but empty" in done.stderr


@pytest.mark.parametrize("text", ["", "\n \n# a comment\n", "\ufeff\n"])
def test_a_file_without_a_token_starts_no_server(tmp_path, text):
    file = tmp_path / "tokens"
    file.write_text(text, encoding="utf-8")
    done = accord_once("serve", "--port", "0", "--token-file", str(file))
    assert done.returncode == 2
    assert "contains no token" in done.stderr


def test_a_token_that_appears_twice_starts_no_server(tmp_path):
    file = tmp_path / "tokens"
    file.write_text("s3cret ada\ns3cret bob\n")
    done = accord_once("serve", "--port", "0", "--token-file", str(file))
    assert done.returncode == 2
    assert "token in line 2 is a duplicate" in done.stderr
    assert "s3cret" not in done.stderr


async def test_a_server_on_another_address_of_this_machine_answers_to_it():
    async with served("--host", "127.0.0.2") as url:
        assert "127.0.0.2" in url
        async with editor_of(transport_to(url, "http1")) as editor:
            assert await editor.open_session()


@pytest.mark.parametrize(("url", "code"), [("ftp://x", 1), ("nonsense", 2)])
def test_an_invalid_url_is_reported_in_one_line(url, code):
    done = accord_once("bridge", url)
    assert done.returncode == code
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["bridge", "http://127.0.0.1:1/acp"], ["serve", "--port", "0"]])
def test_a_missing_extra_is_reported_with_what_to_install(arguments):
    without = "import sys; sys.modules.update(dict.fromkeys(['hpack', 'httptools', 'websockets'])); "
    script = f"{without}from accord_tools.cli import main; sys.exit(main({arguments!r}))"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert install_command("http") in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_reported_in_one_line():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = accord_once("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "cannot listen" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--certificate", "/nonexistent"], "cannot use the certificate /nonexistent"),
        (["--certificate", __file__], "not a PEM certificate"),
        (["--host", "no-such-name.invalid"], "cannot listen on no-such-name.invalid"),
    ],
)
def test_an_unusable_certificate_or_file_is_reported_in_one_line(arguments, said):
    done = accord_once("serve", "--port", "0", *arguments, ACCORD_TOKEN="s3cret")
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_help_names_every_limit_with_its_default():
    shown = accord_once("serve", "--help").stdout
    for name, value in ((field.name, field.default) for field in dataclasses.fields(ServerLimits)):
        assert f"  {name}={value:g} " in shown or f"  {name}={value} " in shown


OWNED = """
import os, sys, accord
agent = accord.Agent("owned", store=accord.SqliteStore(sys.argv[1]))
@agent.on_prompt
async def tell(turn):
    await turn.say(f"{os.environ.get('ACCORD_OWNER')} {os.environ.get('ACCORD_TOKEN')}")
agent.run()
"""


async def test_users_of_a_command_have_their_own_sessions_and_not_the_tokens(tmp_path):
    way = "http1"
    script, tokens = tmp_path / "agent.py", tmp_path / "tokens"
    script.write_text(OWNED)
    tokens.write_text("a ada\nb bob\n")
    command = [sys.executable, str(script), str(tmp_path / "sessions.db")]
    async with served("--token-file", str(tokens), "--", *command, ACCORD_TOKEN="not this") as url:
        async with editor_of(transport_to(url, way, headers={"Authorization": "Bearer a"})) as ada:
            session = await ada.open_session()
            await ada.prompt(session, "who?")
            assert ada.text(session) == "ada None"
        async with editor_of(transport_to(url, way, headers={"Authorization": "Bearer b"})) as bob:
            assert (await bob.request(v1.ListSessionsRequest(), timeout=DEADLINE)).sessions == []
            for request in v1.LoadSessionRequest, v1.ResumeSessionRequest:
                with pytest.raises(accord.PeerError):
                    await bob.request(request(session, "/project", []), timeout=DEADLINE)
        async with editor_of(transport_to(url, way, headers={"Authorization": "Bearer a"})) as ada:
            assert [
                it.session_id for it in (await ada.request(v1.ListSessionsRequest(), timeout=DEADLINE)).sessions
            ] == [session]
            await ada.request(v1.LoadSessionRequest(session, "/project", []), timeout=DEADLINE)


async def test_each_token_without_an_owner_is_an_owner(tmp_path):
    script, tokens = tmp_path / "agent.py", tmp_path / "tokens"
    script.write_text(OWNED)
    tokens.write_text("first-token\nsecond-token\n")
    command = [sys.executable, str(script), str(tmp_path / "sessions.db")]
    names = []
    async with served("--token-file", str(tokens), "--", *command) as url:
        for token, sessions in ("first-token", 0), ("second-token", 0), ("first-token", 1):
            async with editor_of(transport_to(url, "http1", headers={"Authorization": f"Bearer {token}"})) as editor:
                listed = await editor.request(v1.ListSessionsRequest(), timeout=DEADLINE)
                assert len(listed.sessions) == sessions
                await editor.prompt(session := await editor.open_session(), "who?")
                names.append(editor.text(session).split()[0])
    assert names[0] == names[2] != names[1]
    assert not any("first-token" in name or "second-token" in name for name in names)


ENVIRONMENTS = """
import os, sys
from pathlib import Path
folder = Path("/proc", str(os.getppid()))
Path(sys.argv[1]).write_bytes((folder / "environ").read_bytes() + repr(os.environ).encode())
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this test reads environments in /proc")
@pytest.mark.usefixtures("fresh_programs")  # it looks into the memory of the processes above it
async def test_an_agent_finds_no_token_in_its_servers_environment(tmp_path):
    script, seen = tmp_path / "agent.py", tmp_path / "seen"
    script.write_text(ENVIRONMENTS)
    async with served("--", sys.executable, str(script), str(seen), ACCORD_TOKEN="T0PSECRET") as url:
        with pytest.raises(accord.PeerError, match="ended"):
            async with editor_of(transport_to(url, "http1", headers={"Authorization": "Bearer T0PSECRET"})):
                pass
    assert b"PATH" in seen.read_bytes()
    assert b"T0PSECRET" not in seen.read_bytes()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this test reads environments in /proc")
@pytest.mark.parametrize("command", [("run", "hello"), ("login", "--list")], ids=["run", "login"])
@pytest.mark.usefixtures("fresh_programs")  # it looks into the memory of the processes above it
def test_a_local_agent_finds_no_token_of_the_command_that_started_it(tmp_path, command):
    script, seen = tmp_path / "agent.py", tmp_path / "seen"
    script.write_text(ENVIRONMENTS + "Path(sys.argv[1]).open('ab').write(Path('/proc/self/environ').read_bytes())")
    accord_once(*command, "--", sys.executable, str(script), str(seen), ACCORD_TOKEN="T0PSECRET")
    assert b"PATH" in seen.read_bytes()
    assert b"T0PSECRET" not in seen.read_bytes()


async def test_the_bridge_makes_a_remote_agent_a_local_one(server, way):
    url = server.url.replace("http", "ws", 1) if way == "websocket" else server.url
    async with editor_of(ProcessTransport([*ACCORD, "bridge", url])) as editor:
        session = await editor.open_session()
        await editor.prompt(session, "count 300")
        assert editor.text(session) == "".join(f"{number} " for number in range(300))
        await editor.prompt(session, "ask")
        assert editor.text(session).endswith("allowed")
    await nobody_is_connected(server)


async def test_the_bridge_says_why_it_cannot_reach_the_agent(way):
    async with serving(an_agent(), access=Access(["s3cret"])) as server:
        url = server.url.replace("http", "ws", 1) if way == "websocket" else server.url
        with pytest.raises(accord.ConnectionClosed) as caught:
            async with editor_of(ProcessTransport([*ACCORD, "bridge", url])):
                pass
        assert "401" in caught.value.stderr
        assert caught.value.stderr.count("\n") == 1
        async with editor_of(ProcessTransport([*ACCORD, "bridge", url], env={"ACCORD_TOKEN": "s3cret"})) as editor:
            assert await editor.open_session()


async def test_the_bridge_ends_with_its_server(way):
    async with serving(an_agent()) as server:
        url = server.url.replace("http", "ws", 1) if way == "websocket" else server.url
        async with editor_of(ProcessTransport([*ACCORD, "bridge", url])) as editor:
            assert await editor.open_session()
            await server.app.close()
            end = await editor.connection.closed()
            assert end.exit_code == 1
            assert end.stderr.count("\n") == 1
