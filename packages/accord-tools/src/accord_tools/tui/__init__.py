"""The terminal client, `accord chat`, on Textual (extra `cli`): a transcript drawn line by line, an editor, questions.

It drives agents through `RemoteAgent`, `RemoteSession` and `SessionState`, and speaks no protocol itself.
"""
