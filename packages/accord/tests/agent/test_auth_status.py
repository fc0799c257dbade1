"""`auth/status`, and how a client is told of a login and a logout."""

import pytest

import accord
from accord import RequestError, v1
from tests.agent import feature_agents
from tests.waiting import eventually

ADA = v1.AuthAccount("ada@example.com", active=True)


def agent_with(**options):
    agent = accord.Agent("status", **{"unstable": True} | options)
    agent.on_prompt(lambda _: None)
    return agent


async def status_of(client):
    return await client.request("auth/status", {})


async def test_a_client_learns_of_the_account_by_asking_and_by_being_told(reach):
    async with reach("account") as remote:
        assert remote.capabilities.auth_status
        told = []

        @remote.on(v1.AuthStatusUpdateNotification)
        def changed(update):
            told.append((update.state, update.accounts))

        assert await remote.auth_status() == v1.AuthStatusResponse("unauthenticated")
        await remote.login()
        assert await remote.auth_status() == v1.AuthStatusResponse("authenticated", [ADA])
        await remote.logout()
        assert await remote.auth_status() == v1.AuthStatusResponse("unauthenticated")
        await eventually(lambda: len(told) == 2)
        assert told == [("authenticated", [ADA]), ("unauthenticated", [])]


async def test_a_client_is_told_after_the_answer_to_its_login(scripted):
    async with scripted(feature_agents.account()) as client:
        call = client.call("authenticate", {"methodId": "account"})
        assert (await client.receive())["id"] == call
        told = await client.expect("auth/status_update")
        assert told["params"] == {
            "state": "authenticated",
            "accounts": [{"label": "ada@example.com", "active": True}],
        }


async def test_an_agent_without_logins_needs_none(scripted):
    async with scripted(agent_with()) as client:
        assert await status_of(client) == {"state": "not_required"}


async def test_without_a_function_the_status_follows_from_the_logins(scripted):
    agent = agent_with()
    agent.login("account", "Account")(lambda: None)
    async with scripted(agent) as client:
        assert await status_of(client) == {"state": "unauthenticated"}
        await client.request("authenticate", {"methodId": "account"})
        await client.expect("auth/status_update")
        assert await status_of(client) == {"state": "authenticated"}


async def test_a_user_who_is_logged_in_already_is_authenticated(scripted):
    agent = agent_with()
    agent.login("account", "Account")(lambda: None)
    agent.on_login_check(lambda: True)
    async with scripted(agent) as client:
        assert await status_of(client) == {"state": "authenticated"}


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("unknown", {"state": "unknown"}),
        ("_example.com/expired", {"state": "_example.com/expired"}),
        ([ADA], {"state": "authenticated", "accounts": [{"label": "ada@example.com", "active": True}]}),
        ([], {"state": "unauthenticated"}),
        (None, {"state": "unauthenticated"}),
        (v1.AuthStatusResponse("unknown", meta={"a": 1}), {"state": "unknown", "_meta": {"a": 1}}),
    ],
    ids=["a state", "a state of its own", "accounts", "no accounts", "nothing", "an answer"],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_function_says_the_status(scripted, said, answered, kind):
    agent = agent_with(unstable=False)  # a function for it declares it
    agent.login("account", "Account")(lambda: None)

    async def later():
        return said

    agent.on_auth_status(later if kind == "async def" else lambda: said)
    async with scripted(agent) as client:
        assert await status_of(client) == answered


async def test_asking_for_the_status_never_demands_a_login(scripted):
    agent = agent_with()
    agent.login("account", "Account")(lambda: None)

    @agent.on_auth_status
    def status():
        raise RequestError.auth_required("log in first")

    async with scripted(agent) as client:
        assert await status_of(client) == {"state": "unauthenticated"}


async def test_a_function_that_fails_is_an_internal_error(scripted):
    agent = agent_with()

    @agent.on_auth_status
    def status():
        raise OSError("no keyring")

    async with scripted(agent) as client:
        await client.expect_error(client.call("auth/status", {}), -32603)


async def test_a_client_is_told_nothing_by_an_agent_that_has_not_declared_it(scripted):
    agent = agent_with(unstable=False)
    agent.login("account", "Account")(lambda: None)
    async with scripted(agent) as client:
        await client.request("authenticate", {"methodId": "account"})
        await client.expect_silence()


def test_a_second_function_for_the_status_is_refused():
    agent = agent_with()
    agent.on_auth_status(lambda: None)
    with pytest.raises(ValueError, match=r"@agent\.on_auth_status was used twice"):
        agent.on_auth_status(lambda: "unknown")


async def test_an_agent_that_has_not_declared_it_is_not_asked_for_the_status():
    async with accord.connect(agent_with(unstable=False)) as remote:
        assert not remote.capabilities.auth_status
        with pytest.raises(accord.CapabilityMissing):
            await remote.auth_status()
