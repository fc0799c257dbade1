"""Stores of an agent's sessions: the interface, and two implementations, in memory and in a SQLite file."""
