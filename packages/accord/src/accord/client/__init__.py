"""For authors of clients: `Client` is what you write; `RemoteAgent`, `RemoteSession` and `Reply` are what you use."""
