"""The side of an agent."""
