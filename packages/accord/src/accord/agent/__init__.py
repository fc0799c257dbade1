"""The high level for authors of agents: `Agent`, `Session`, `Turn`, `Tool`, and the client as they see it.

The path of a prompt: `agent_connection` (is the session known, may the prompt have this content?) -> `session_activity`
(whose turn is it?) -> `turn` -> the author's function -> the answer. Every update of a session goes out through
`SessionUpdates`, and `record` stores it first.
"""
