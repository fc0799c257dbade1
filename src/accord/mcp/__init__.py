"""The MCP servers that a client gives to a session, connected with the official package (extra `mcp`).

    servers = McpServers(request.mcp_servers, Surroundings(peer, session_id, roots))
    servers.start()                                  # all at once, each with a deadline
    for tool in await servers.tools():               # of all that are there; a failed server is in servers.failures()
        result = await servers.run(tool, {...})      # content as the protocol has it

Data's way: a server's description -> `opening` (process, streamable HTTP or SSE) -> `link`, one task for each server
that enters its contexts, holds them and leaves them -> `servers`, which asks all links -> `catalog`, what they offer.
`content` and `elicitation` carry what MCP says into this protocol's words. Nothing here knows an agent.
"""

from accord.mcp.catalog import McpPrompt as McpPrompt, McpResource as McpResource, McpTool as McpTool
from accord.mcp.content import McpMessage as McpMessage, McpResult as McpResult
from accord.mcp.opening import mcp_capabilities as mcp_capabilities
from accord.mcp.servers import McpServers as McpServers
from accord.mcp.surroundings import Surroundings as Surroundings
