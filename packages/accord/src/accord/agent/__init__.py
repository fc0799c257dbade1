"""The high level with which agents are written: `Agent`, `Session`, `Turn`, `Tool`, and the client as they hold it.

A prompt's way in: `agent_connection` (is the session known, may the prompt hold this?) -> `session_activity` (whose
turn is it?) -> `turn` -> the author's function -> the answer. Every update of a session goes out by `SessionUpdates`,
which `record` keeps first.
"""
