"""MCP over ACP: MCP servers of a client, spoken with over the connection between client and agent.

    client: accord.tools(...)  ──▶ `LentServers`: one `Line` to the server for each server id or MCP connection
    agent:  session.mcp        ──▶ `LinesToClient`: one `Line` for each server of a session

A `Line` joins a pair of the official package's streams with `mcp/message`. What differs between the forms of the wire
is in its `Form`; the keys of a message tell which form it has.
"""
