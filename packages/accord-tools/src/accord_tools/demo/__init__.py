"""The built-in agent: every feature of the protocol, no model, no network. `accord demo` serves it over stdio.

`agent` puts it together: a table of slash commands, and `conversation` for plain words. Each command is a function of a
`Turn` in the file of its topic: `telling` (what an agent says), `working` (files and commands), `background`, `asking`
(forms and pages), `settings`, `servers` (MCP). They are written as any author would write them.
"""

from accord_tools.demo.agent import demo_agent as demo_agent
