"""The names of the protocol's methods, and its version."""

from __future__ import annotations

from typing import Final

AGENT_METHODS: Final = {
    name.replace("/", "_"): name
    for name in (
        "initialize",
        "authenticate",
        "providers/list",
        "providers/set",
        "providers/disable",
        "session/new",
        "session/load",
        "session/set_mode",
        "session/set_config_option",
        "session/prompt",
        "session/cancel",
        "mcp/message",
        "session/list",
        "session/delete",
        "session/fork",
        "session/resume",
        "session/close",
        "logout",
        "nes/start",
        "nes/suggest",
        "nes/accept",
        "nes/reject",
        "nes/close",
    )
} | {
    "document_did_open": "document/didOpen",
    "document_did_change": "document/didChange",
    "document_did_close": "document/didClose",
    "document_did_save": "document/didSave",
    "document_did_focus": "document/didFocus",
}
"""The methods that an agent handles, by a name without a slash."""

CLIENT_METHODS: Final = {
    name.replace("/", "_"): name
    for name in (
        "session/request_permission",
        "session/update",
        "fs/write_text_file",
        "fs/read_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/release",
        "terminal/wait_for_exit",
        "terminal/kill",
        "mcp/connect",
        "mcp/message",
        "mcp/disconnect",
        "elicitation/create",
        "elicitation/complete",
    )
}
"""The methods that a client handles, by a name without a slash."""

PROTOCOL_VERSION: Final = 1
"""The version of the protocol."""
