"""Terminals lent to an agent."""
