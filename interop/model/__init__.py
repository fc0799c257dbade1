"""A model for agents that need one: a local server that speaks as the hosted ones do, and says what a script says.

It speaks OpenAI's chat completions and responses, Anthropic's messages and Gemini's generateContent, streaming and not.
Data's way: a request of any of them -> `Asked` (the user's last words, the tools on offer, whether a tool has answered)
-> `reply` decides, once for all of them -> pieces (words, or one call of a tool) -> the form of the one that asked.

The user's words decide: `EDIT path` calls a tool that writes this file, `TOOL name` calls the tool of this name with
numbers as `left` and `right`, `STREAM` goes on until nobody listens any more, anything else is answered with a
sentence. Standard library only.
"""
