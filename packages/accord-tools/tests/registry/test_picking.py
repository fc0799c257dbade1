"""The list of agents that a user picks one from."""

import pytest

import accord
from accord_tools.registry.index import load_index
from accord_tools.registry.picking import pickable_agents
from tests.registry.conftest import DEMO

NPX = {"npx": {"package": "helper@1.0.0"}}
FAR = {"binary": {"plan9-mips": {"archive": "https://example.com/a.zip", "cmd": "./a"}}}


@pytest.fixture
def four(registry, put_in):
    """An installed agent, one that can be installed, and two that cannot be installed here."""
    registry.add_archive("demo", {"demo": DEMO}, "./demo")
    registry.add_entry("helper", NPX, description="Reviews code")
    registry.add_entry("far", FAR)
    registry.add_entry("boxed", {"docker": {}})
    put_in("demo")


def test_installed_agents_come_first_and_each_says_its_state(four):
    assert [(agent.name, agent.state, agent.detail.split(" for ")[0]) for agent in pickable_agents()] == [
        ("demo", "installed", "a download"),
        ("helper", "available", "npm"),
        ("boxed", "unavailable", "unknown kind of distribution 'docker'"),
        ("far", "unavailable", "nothing"),
    ]


async def test_an_installed_agent_is_picked_by_its_name(four):
    async with accord.connect(pickable_agents()[0].name) as remote:
        session = await remote.new_session("/")
        assert (await session.prompt("Say hello")).text == "hello"


def test_every_word_of_a_search_must_occur_in_an_agent(four):
    assert [agent.name for agent in pickable_agents("CODE reviews")] == ["helper"]
    assert pickable_agents("reviews nothing") == []


def test_a_newer_version_of_an_installed_agent_is_said(four, registry):
    registry.add_archive("demo", {"demo": DEMO}, "./demo", version="1.1.0")
    load_index(fresh=0.0)
    picked = pickable_agents()[0]
    assert (picked.version, picked.detail) == ("1.0.0", "1.1.0 is available")


def test_the_network_is_used_only_if_the_caller_allows_it(registry, here):
    registry.add_entry("helper", NPX)
    assert pickable_agents() == []
    assert registry.requests == []
    assert [agent.name for agent in pickable_agents(fetching=True)] == ["helper"]
    assert [agent.name for agent in pickable_agents()] == ["helper"]


def test_installed_agents_are_listed_without_any_registry(four, monkeypatch):
    monkeypatch.setenv("ACCORD_REGISTRY", "off")
    assert [agent.name for agent in pickable_agents()] == ["demo"]
