"""The bridge: MCP servers of this program, for agents that can only start an MCP server as a process.

    the agent ── starts ──▶ `shim.py` ── socket, token ──▶ `Bridge` ──▶ the server, in this program

The shim copies bytes and knows nothing. The socket is in a folder that only the user can read, and each server has a
token of its own, which the agent hands to the shim in an environment variable.
"""
