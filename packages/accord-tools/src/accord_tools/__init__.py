"""The command `accord`: run, chat with, inspect and install agents; and a coding agent.

Each room is a part of the command; `accord_tools.cli` joins them.
"""

__version__ = "0.2.0"
