"""Active checks of a client: it starts us as its agent, and scenarios show how it reacts."""
