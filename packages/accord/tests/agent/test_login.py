"""Logging in: what is offered to whom, what waits for it, and the way out."""

import sys

import pytest

from accord import Agent, PeerError, RequestError, v1
from accord.schema.legacy import terminal_auth


def agent_with(**options):
    agent = Agent("logins", **options)
    agent.on_prompt(lambda _: None)
    return agent


def authenticate(method_id):
    return v1.AuthenticateRequest(v1.AuthMethodId(method_id))


async def code_of(asking):
    with pytest.raises(PeerError) as raised:
        await asking
    return raised.value.code


async def test_an_agent_without_logins_asks_for_none(serve):
    async with serve(agent_with()) as editor:
        assert editor.agent.auth_methods == []
        assert editor.agent.agent_capabilities.auth == v1.AgentAuthCapabilities()
        assert await code_of(editor.request(authenticate("any"))) == -32601
        await editor.open()


@pytest.mark.requirement(
    "auth.methods-advertised",
    "auth.required-code",
    "auth.authenticate.empty-result",
    "auth.authenticate.opens-sessions",
    "auth.logout.empty-result",
    "auth.logout.closes-sessions",
)
async def test_sessions_are_for_who_has_logged_in(serve):
    agent, story = agent_with(), []

    @agent.login("account", "Account", description="With your account")
    async def log_in(login):
        story.append(f"in by {login.method_id}")

    @agent.on_logout
    def log_out():
        story.append("out")

    async with serve(agent) as editor:
        assert editor.agent.auth_methods == [v1.AuthMethodAgent("account", "Account", "With your account")]
        assert editor.agent.agent_capabilities.auth.logout is not None
        assert await code_of(editor.open()) == -32000
        assert await editor.request(authenticate("account")) == v1.AuthenticateResponse()
        session = await editor.open()
        await editor.prompt(session, "go")
        assert await editor.request(v1.LogoutRequest()) == v1.LogoutResponse()
        assert await code_of(editor.open()) == -32000
        assert await code_of(editor.prompt(session, "go")) == -32000
        await editor.request(authenticate("account"))
        await editor.prompt(session, "go")
        assert story == ["in by account", "out", "in by account"]


async def test_a_connection_is_not_authenticated_by_another(serve):
    agent = agent_with()
    agent.login("account", "Account")(lambda: None)
    async with serve(agent) as one, serve(agent) as other:
        await one.request(authenticate("account"))
        await one.open()
        assert await code_of(other.open()) == -32000


async def test_who_is_logged_in_already_need_not_log_in(serve):
    agent, looked = agent_with(), []
    agent.login("account", "Account")(lambda: None)

    @agent.on_login_check
    async def look():
        looked.append("looked")
        return True

    async with serve(agent) as editor:
        await editor.open()
        await editor.open()
        assert looked == ["looked"]


@pytest.mark.parametrize("ends", ["with False", "with an error"])
async def test_a_login_that_fails_lets_nobody_in(serve, ends):
    agent = agent_with()

    @agent.login("account", "Account")
    def log_in():
        if ends == "with False":
            return False
        raise RequestError.auth_required("wrong password")

    async with serve(agent) as editor:
        assert await code_of(editor.request(authenticate("account"))) == -32000
        assert await code_of(editor.open()) == -32000


async def test_a_way_in_that_is_not_offered_is_refused(serve):
    agent = agent_with()
    agent.login("account", "Account")(lambda: None)
    async with serve(agent) as editor:
        assert await code_of(editor.request(authenticate("other"))) == -32602


@pytest.mark.requirement("auth.terminal.only-when-advertised", "auth.terminal.no-command")
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "not declared"])
async def test_a_login_at_a_terminal_is_for_clients_that_have_one(serve, declared):
    agent, credentials = agent_with(), []

    @agent.terminal_login("tui", "At a terminal", args=["--login"], env={"PLAIN": "1"})
    def look():
        return bool(credentials)

    declare = v1.ClientCapabilities(auth=v1.AuthCapabilities(terminal=declared))
    async with serve(agent, declare=declare) as editor:
        method = v1.AuthMethodTerminal("tui", "At a terminal", args=["--login"], env={"PLAIN": "1"})
        assert editor.agent.auth_methods == [method] * declared
        assert await code_of(editor.request(authenticate("tui"))) == -32000
        credentials.append("key")
        await editor.request(authenticate("tui"))
        await editor.open()


async def test_a_login_at_a_terminal_needs_no_word_of_the_client(serve):
    agent, credentials = agent_with(), []

    @agent.terminal_login("tui", "At a terminal")
    async def look():
        return bool(credentials)

    @agent.on_logout
    def forget():
        credentials.clear()

    async with serve(agent) as editor:
        assert await code_of(editor.open()) == -32000
        credentials.append("key")
        await editor.open()
        await editor.request(v1.LogoutRequest())
        assert await code_of(editor.open()) == -32000


async def test_an_older_client_gets_the_whole_command_of_a_login_at_a_terminal(serve):
    agent = agent_with()
    agent.terminal_login("tui", "At a terminal", args=["--login"], env={"PLAIN": "1"})(lambda: False)
    async with serve(agent, declare=v1.ClientCapabilities(meta={"terminal-auth": True})) as editor:
        (method,) = editor.agent.auth_methods
        command = terminal_auth(method.meta)
        assert (method.id, command.command, command.env) == ("tui", sys.executable, {"PLAIN": "1"})
        assert command.args == [*sys.orig_argv[1:], "--login"]


async def test_who_has_logged_out_is_not_let_in_by_the_environment(serve, monkeypatch):
    agent = agent_with()
    agent.environment_login("key", "API key", ["ACCORD_TEST_KEY"])
    agent.on_logout(lambda: None)
    monkeypatch.setenv("ACCORD_TEST_KEY", "secret")
    async with serve(agent) as editor:
        await editor.open()
        await editor.request(v1.LogoutRequest())
        assert await code_of(editor.open()) == -32000
        await editor.request(authenticate("key"))
        await editor.open()


@pytest.mark.parametrize("unstable", [True, False], ids=["proposals too", "stable only"])
async def test_a_environment_login_is_only_proposed(serve, monkeypatch, unstable):
    agent = agent_with(unstable=unstable)
    agent.environment_login("key", "API key", ["ACCORD_TEST_KEY", v1.AuthEnvVar("ACCORD_TEST_ORG", optional=True)])
    async with serve(agent) as editor:
        assert len(editor.agent.auth_methods) == unstable
        assert await code_of(editor.request(authenticate("key"))) == -32000
        monkeypatch.setenv("ACCORD_TEST_KEY", "secret")
        await editor.request(authenticate("key"))
        await editor.open()


def test_two_ways_in_have_two_ids():
    agent = agent_with()
    agent.login("account", "Account")(lambda: None)
    with pytest.raises(ValueError, match="already"):
        agent.login("account", "Another")(lambda: None)
