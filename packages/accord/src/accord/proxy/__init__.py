"""Proxies between a client and an agent, and the conductor that joins them to a chain."""
