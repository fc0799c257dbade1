"""Accord: the Agent Client Protocol for Python."""
