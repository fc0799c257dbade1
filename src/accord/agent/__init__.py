"""The high level with which agents are written: `Agent`, `Session`, `Turn`, `Tool`, and the client as they hold it.

A prompt's way in:  `service` (is the session known, may the prompt hold this?) -> `turns` (whose turn is it?) -> `turn`
-> the author's function -> the answer. Everything a session says goes out by `Session.send`.
"""
