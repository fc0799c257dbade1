"""Installs agents: archives, packages of npm, and packages of PyPI, each into a folder of its own."""
