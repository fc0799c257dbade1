"""Where an agent's sessions live: an interface, and two stores behind it, in memory and in a SQLite file."""
