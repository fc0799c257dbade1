"""The built-in agent's glossary: terms of the protocol, each explained in a sentence or two."""

from __future__ import annotations

import re

WORDS: dict[str, str] = {
    "acp": (
        "The Agent Client Protocol lets any editor, terminal or script work with any coding agent. Both sides "
        "send JSON-RPC messages over a pipe or a socket, and either may ask the other."
    ),
    "accord": (
        "Accord is the Agent Client Protocol for Python: a library to write agents and clients with, and a "
        "command line. I am an ordinary agent written with it; `accord demo` starts me."
    ),
    "agent": (
        "An agent works on what you ask for, usually with a language model. It tells its client what it does, and "
        "asks before it changes things."
    ),
    "client": (
        "A client is what you sit in front of: an editor, a terminal, a bot. It shows what the agent does, and "
        "lends it files, terminals and your attention."
    ),
    "session": "A session is one conversation in one folder. An agent can hold several at once.",
    "turn": (
        "A turn is everything between your prompt and its stop reason. It may hold messages, thoughts, plans and "
        "tool calls."
    ),
    "prompt": "A prompt is what you send: text, and where the agent takes it images, sounds and files.",
    "tool call": (
        "A tool call is one thing that an agent does: reading, editing, running. It has a title, a status, and "
        "content such as a diff. Try `/edit`."
    ),
    "permission": (
        "Before an agent does something that matters it asks, and the client shows the choices, such as once, "
        "always or no. Try `/edit` in the mode `ask`."
    ),
    "diff": "An edit is shown as the whole text before and after, so that the client can draw the difference.",
    "plan": "A plan is the agent's list of steps, sent whole each time it changes. Try `/plan`.",
    "mode": "A mode is a way of working that you can switch: mine are explain, ask and auto. Try `/mode`.",
    "config": (
        "Config options are what you may choose about a session: mine are how long my answers are, and whether I "
        "think aloud."
    ),
    "elicitation": (
        "Elicitation is an agent asking you for values in a form, or sending you to a page. Try `/form` and `/url`."
    ),
    "terminal": (
        "A terminal is a command that the client runs for the agent, whose output it shows as it comes. Try `/run`."
    ),
    "cancel": (
        "You may cancel a turn at any time. The agent stops what it does, and answers with the stop reason "
        "`cancelled`. Try `/slow`, then cancel."
    ),
    "stop reason": (
        "Every turn ends with one: `end_turn`, `max_tokens`, `max_turn_requests`, `refusal` or `cancelled`. Try "
        "`/stop`."
    ),
    "mcp": (
        "MCP servers give agents more tools. A client names them when it starts a session; `/tools` shows yours "
        "and `/call` uses one."
    ),
    "capability": (
        "At the start both sides say what they can do; nothing is used that was not declared. Try `/client` to "
        "see what yours lends."
    ),
    "notice": "A notice is something you should know that is no part of the conversation. Try `/notice`.",
    "slash command": "Slash commands are shortcuts that an agent offers. `/help` lists mine.",
    "json-rpc": (
        "JSON-RPC 2.0 is the form of every message: a call with an id and its answer, or a notification without."
    ),
}

OTHER_NAMES = {
    "agent client protocol": "acp",
    "protocol": "acp",
    "tool": "tool call",
    "permissions": "permission",
    "modes": "mode",
    "option": "config",
    "configuration": "config",
    "setting": "config",
    "form": "elicitation",
    "cancellation": "cancel",
    "model context protocol": "mcp",
    "capabilities": "capability",
    "jsonrpc": "json-rpc",
    "command": "slash command",
    "editor": "client",
}


def about(words: str) -> str | None:
    """The explanation of the term in this text; of several terms, the longest one counts."""
    text = words.lower()
    names = [*WORDS, *OTHER_NAMES]
    found = [name for name in names if re.search(rf"\b{re.escape(name)}s?\b", text)]
    if not found:
        return None
    name = max(found, key=len)
    return WORDS[OTHER_NAMES.get(name, name)]
