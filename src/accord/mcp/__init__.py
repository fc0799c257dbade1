"""The MCP servers that a client gives to a session, connected with the official package (extra `mcp`).

    servers = McpServers(request.mcp_servers, Surroundings(peer, session_id, roots))
    servers.start()                                  # all at once, each with a deadline
    for tool in await servers.tools():               # of all that can be reached; the others are in servers.failures()
        result = await servers.run(tool, {...})      # its content is made of this protocol's blocks

The path of a server's description: `opening` makes a transport of it (process, streamable HTTP or SSE), `session_task`
holds the connection, `server` makes requests over it, `servers` joins all servers of a session, and `catalog` lists
what they offer. `content` and `elicitation` convert from MCP's types. Nothing here depends on an agent.
"""

from accord.mcp.catalog import McpPrompt as McpPrompt, McpResource as McpResource, McpTool as McpTool
from accord.mcp.content import McpMessage as McpMessage, McpResult as McpResult
from accord.mcp.opening import mcp_capabilities as mcp_capabilities
from accord.mcp.servers import McpServers as McpServers
from accord.mcp.surroundings import Surroundings as Surroundings
