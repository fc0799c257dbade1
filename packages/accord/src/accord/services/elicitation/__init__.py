"""Questions of an agent to the user."""
