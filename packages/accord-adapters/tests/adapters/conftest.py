"""Agents of each framework, each with the framework's real package and a model that follows a script."""

import importlib
from contextlib import asynccontextmanager
from importlib.util import find_spec

import pytest

import accord
from tests.adapters.script import Script

FRAMEWORKS = {
    "chat": "openai",
    "pydantic_ai": "pydantic_ai",
    "langgraph": "langgraph",
    "openai_agents": "agents",
    "llama_index": "llama_index.core",
    "claude_agent_sdk": "claude_agent_sdk",
}
"""The adapters, and the package that each needs."""


@pytest.fixture
def script():
    script = Script()
    yield script
    script.over.set()


def is_installed(framework):
    package, _, _ = FRAMEWORKS[framework].partition(".")
    return find_spec(package) is not None


@pytest.fixture(params=filter(is_installed, FRAMEWORKS))
def framework(request):
    """The name of an adapter whose framework is installed."""
    return request.param


@pytest.fixture
def models(framework, script):
    """The framework's models: `models.served()` is an agent whose model follows the script."""
    with importlib.import_module(f"tests.adapters.with_{framework}").Models(script) as models:
        yield models


@pytest.fixture
def opened(models, tmp_path):
    """`async with opened() as session`: a session with an agent of the framework."""

    @asynccontextmanager
    async def open_session(*, allow=True, load=None, client=None, tools=(), **options):
        agent = models.served(tools, unstable=True, context=1000, **options)
        client = client or accord.Client(permissions=lambda _: allow)
        async with accord.connect(agent, client, unstable=True) as remote:
            if load is None:
                yield await remote.new_session(tmp_path)
            else:
                yield await remote.load(load, tmp_path)

    return open_session
