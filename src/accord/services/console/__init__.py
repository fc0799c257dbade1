"""A user at a terminal."""
