"""The MCP server that the checker offers to agents."""

import json
from http.client import HTTPConnection

from accord_check.agent.mcp_probe import HEADER, McpOverHttp


def test_only_its_own_path_is_answered_and_counted():
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    with McpOverHttp() as server:
        statuses = []
        for path in ("/elsewhere", server.path):
            connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
            connection.request("POST", path, asked, {HEADER: path})
            statuses.append(connection.getresponse().status)
            connection.close()
        assert (statuses, server.marks) == ([404, 200], [server.path])
