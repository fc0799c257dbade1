"""Writing clients: `Client` is what you write; `RemoteAgent`, `RemoteSession` and `Reply` are what you hold."""
