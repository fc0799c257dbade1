"""Endpoints that a client sets over the wire: its headers go there, and nothing of the user's own."""

import os
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from interop.model.server import Handler, ModelServer

import accord
from accord_tools.coder.open_model import ModelSettings, OpenModels

OWN = {
    "ANTHROPIC_API_KEY": "own-key-a",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Own: own-header",
    "OPENAI_API_KEY": "own-key-o",
    "OPENAI_ORG_ID": "own-organization",
    "OPENAI_PROJECT_ID": "own-project",
}
"""What the user's environment says to the packages of the providers."""

HEADERS = {"Authorization": "Bearer of-the-client", "X-Api-Key": "client-secret"}


class Noting(Handler):
    """Answers as the model does, and notes the headers."""

    def do_GET(self):  # noqa: N802
        self.server.noted.append(dict(self.headers))
        super().do_GET()

    def do_POST(self):  # noqa: N802
        self.server.noted.append(dict(self.headers))
        super().do_POST()


@pytest.fixture
def gateway(script):
    with ModelServer(reply=script) as server:
        server.RequestHandlerClass = Noting
        server.noted = []
        yield server


@pytest.fixture
def endpoint(gateway, api_type):
    return accord.Endpoint(api_type, gateway.url + ("" if api_type == "anthropic" else "/v1"), HEADERS)


@pytest.fixture(params=["anthropic", "openai"])
def api_type(request):
    return request.param


@pytest.fixture
def command(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_")) or name == "ACCORD_MODEL":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return [sys.executable, "-m", "accord", "agent", "--store", str(tmp_path / "sessions.sqlite3")]


async def test_a_client_s_endpoint_gets_its_headers_and_nothing_of_the_user_s(
    command, gateway, endpoint, script, project, monkeypatch
):
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    script.say("From the gateway.")
    async with accord.connect(command, providers={"models": endpoint}) as remote:
        session = await remote.new_session(project)
        assert (await session.prompt("Go")).text == "From the gateway."
    sent = gateway.noted
    assert sent
    for headers in sent:
        assert {name.lower(): value for name, value in headers.items() if "own-" in value} == {}
        assert headers.get("Authorization", headers.get("authorization")) == "Bearer of-the-client"
        assert headers.get("X-Api-Key", headers.get("x-api-key")) == "client-secret"


async def test_a_client_s_endpoint_needs_no_key_of_the_user_s(command, endpoint, script, project, gateway, api_type):
    script.say("Without a key.")
    async with accord.connect(command, providers={"models": endpoint}) as remote:
        session = await remote.new_session(project)
        assert (await session.prompt("Go")).text == "Without a key."
    asked = gateway.asked[-1][0]
    assert asked.startswith("claude" if api_type == "anthropic" else "gpt")


async def test_a_new_session_offers_the_models_of_the_client_s_endpoint(command, endpoint, project):
    async with accord.connect(command, providers={"models": endpoint}) as remote:
        session = await remote.new_session(project)
        assert "fake" in {it.model_id for it in session.state.models}
        await session.set_model("fake")  # as `accord run --model` does at once


async def test_a_disabled_provider_is_not_used_until_the_client_sets_one(
    command, gateway, endpoint, script, project, monkeypatch
):
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    async with accord.connect(command) as remote:
        [listed] = await remote.providers()
        assert (listed.provider_id, listed.current.base_url) == ("models", "https://api.anthropic.com")
        await remote.disable_provider("models")
        session = await remote.new_session(project)
        with pytest.raises(accord.PeerError, match="disabled the provider 'models'"):
            await session.prompt("Go")
        await remote.set_provider("models", endpoint)
        script.say("On again.")
        assert (await session.prompt("Go")).text == "On again."


async def test_a_redirect_takes_no_header_to_another_server(command, project, gateway, api_type):
    with redirecting(gateway.url) as url:
        moved = accord.Endpoint(api_type, url, HEADERS)
        async with accord.connect(command, providers={"models": moved}) as remote:
            session = await remote.new_session(project)
            with pytest.raises(accord.PeerError, match="307") as caught:
                await session.prompt("Go")
    assert "client-secret" not in str(caught.value)
    assert gateway.noted == []


@contextmanager
def redirecting(target):
    """A server that sends everything to another one."""

    class Redirects(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(307)
            self.send_header("Location", f"{target}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirects) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    ("api", "package"), [("anthropic", "anthropic"), ("openai", "openai"), ("responses", "openai")]
)
async def test_a_missing_extra_is_named_to_the_client_with_the_command_that_installs_it(
    api, package, project, monkeypatch
):
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    without = f"import sys; sys.modules[{package!r}] = None; from accord_tools.cli import main; main()"
    async with accord.connect([sys.executable, "-c", without, "agent", "--api", api]) as remote:
        for _ in range(2):  # the second import of a module that failed says something else
            with pytest.raises(accord.PeerError, match=r"'s API needs the extra 'agent': pip install .*\[agent\]"):
                await remote.new_session(project)


async def test_an_agent_makes_one_client_for_each_address_and_key(monkeypatch):
    monkeypatch.setenv("OWN_KEY", "first")
    models = OpenModels(ModelSettings(api="openai", base_url="http://127.0.0.1:9", key_variable="OWN_KEY"))
    first, gateway = await models.get(), accord.Endpoint("openai", "http://127.0.0.1:9", {"x-key": "theirs"})
    foreign = await models.get(gateway)
    assert await models.get() is first
    assert await models.get(accord.Endpoint("openai", "http://127.0.0.1:9", {"x-key": "theirs"})) is foreign
    monkeypatch.setenv("OWN_KEY", "second")
    assert len({first, foreign, await models.get()}) == 3
    await models.close()
