"""Active checks of a client: we are the agent that it starts, and scenarios show how it copes."""
