"""The built-in agent: every feature of the protocol, no model, no network. `accord demo` serves it over stdio.

`built_in_agent` assembles it: a table of slash commands, the session's settings, and `demo_talk` for plain words. Each
command is a function of a `Turn`: messages and questions are in `demo_messages`, work with files, commands, plans,
subagents and MCP servers in `demo_work`. They are written as any author would write them.
"""

from accord_tools.demo.built_in_agent import demo_agent as demo_agent
