"""A server of a client's program that a chain of proxies passes on: each request reaches it as it was made."""

from __future__ import annotations

import mcp.types
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer

from accord.mcp.forwarded_server import ForwardedServer


@pytest.mark.parametrize("known", [None, {"owner": "ada"}], ids=["alone", "with arguments"])
async def test_a_completion_is_asked_with_the_arguments_that_are_known_or_without(known):
    provider = MCPServer("garden")

    @provider.prompt()
    def water(owner: str, plant: str) -> str:
        return f"water the {plant} of {owner}"

    @provider.completion()
    async def complete(ref, argument, context):
        arguments = context.arguments if context else None
        return mcp.types.Completion(values=[ref.name, argument.name, argument.value, str(arguments)])

    forwarded = ForwardedServer("garden", lambda: InMemoryTransport(provider))
    async with forwarded.opened() as server, Client(server) as client:
        reference = mcp.types.PromptReference(name="water")
        completed = await client.complete(reference, {"name": "plant", "value": "ro"}, known)
    assert completed.completion.values == ["water", "plant", "ro", str(known)]
