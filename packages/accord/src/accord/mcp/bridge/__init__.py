"""The bridge: MCP servers of this program, for agents that can only start an MCP server as a process.

    the agent ── starts ──▶ `shim.py` ── private socket ──▶ `Bridge` ──▶ the server, in this program

The shim copies bytes and knows nothing. Each server has a token of its own (`accord.callback_socket`), which the agent
hands to the shim in an environment variable.
"""
