"""What a client lends to agents: files, terminals, permissions, forms; and the MCP servers it hands over."""
