"""The MCP servers that a client gives to a session, connected with the official package (extra `mcp`).

    servers = McpServers(request.mcp_servers, Surroundings(peer, session_id, roots))
    servers.start()                                  # all at once, each with a deadline
    for tool in await servers.tools():               # of all that can be reached; the others are in servers.failures()
        result = await servers.run(tool, {...})      # its content is made of this protocol's blocks

The path of a server's description: `server_transports` makes a transport of it (process, streamable HTTP or SSE) and
holds the connection, `mcp_server` makes requests over it, `servers` joins all servers of a session, and `catalog` has
their tools, resources and prompts, in ACP's types. Nothing here depends on an agent.
"""

from typing import TYPE_CHECKING

from accord.installation import on_first_use

if TYPE_CHECKING:
    from accord.mcp.catalog import (
        McpMessage as McpMessage,
        McpPrompt as McpPrompt,
        McpResource as McpResource,
        McpResult as McpResult,
        McpTool as McpTool,
    )
    from accord.mcp.mcp_server import McpServers as McpServers
    from accord.mcp.server_transports import Surroundings as Surroundings
    from accord.schema.capabilities import mcp_capabilities as mcp_capabilities

_HOMES = {
    "catalog": "McpMessage McpPrompt McpResource McpResult McpTool",
    "mcp_server": "McpServers",
    "server_transports": "Surroundings",
    ".schema.capabilities": "mcp_capabilities",
}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(__name__, _HOMES)
