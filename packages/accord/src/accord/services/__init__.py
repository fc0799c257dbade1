"""Services that a client lends to agents: files, terminals, permissions, forms."""
