"""The tools that the model may use: files, search, commands, plans, subagents, and those of MCP servers."""
