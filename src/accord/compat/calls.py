"""The methods of agents and clients in the official Python SDK: which model each takes, and what it answers. Data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CallRow:
    """One method of the SDK's `Agent` or `Client`."""

    attribute: str
    """The name of the Python method."""
    method: str
    """The name of the protocol's method."""
    params: tuple[str, ...]
    """The models of its params; the first is that of a call without a `type`."""
    result: str | None = None
    """The model of its result; None for a notification."""
    may_be_none: bool = False
    """Whether a handler may return None, which stands for a result without fields."""
    unstable: bool = False
    """Whether it needs `use_unstable_protocol`."""
    default: dict[str, object] | None = None
    """The answer if the handler is missing and `is_optional`."""
    is_optional: bool = False
    """Whether a missing handler gives `default` as the result, instead of an error."""


AGENT_CALLS = (
    CallRow("initialize", "initialize", ("InitializeRequest",), "InitializeResponse"),
    CallRow("new_session", "session/new", ("NewSessionRequest",), "NewSessionResponse"),
    CallRow("load_session", "session/load", ("LoadSessionRequest",), "LoadSessionResponse", may_be_none=True),
    CallRow("list_sessions", "session/list", ("ListSessionsRequest",), "ListSessionsResponse"),
    CallRow(
        "close_session",
        "session/close",
        ("CloseSessionRequest",),
        "CloseSessionResponse",
        may_be_none=True,
        unstable=True,
    ),
    CallRow(
        "set_session_mode", "session/set_mode", ("SetSessionModeRequest",), "SetSessionModeResponse", may_be_none=True
    ),
    CallRow(
        "set_session_model",
        "session/set_model",
        ("SetSessionModelRequest",),
        "SetSessionModelResponse",
        may_be_none=True,
    ),
    CallRow(
        "set_config_option",
        "session/set_config_option",
        ("SetSessionConfigOptionSelectRequest", "SetSessionConfigOptionBooleanRequest"),
        "SetSessionConfigOptionResponse",
        may_be_none=True,
    ),
    CallRow("prompt", "session/prompt", ("PromptRequest",), "PromptResponse"),
    CallRow("authenticate", "authenticate", ("AuthenticateRequest",), "AuthenticateResponse", may_be_none=True),
    CallRow("fork_session", "session/fork", ("ForkSessionRequest",), "ForkSessionResponse", unstable=True),
    CallRow("resume_session", "session/resume", ("ResumeSessionRequest",), "ResumeSessionResponse", unstable=True),
    CallRow("cancel", "session/cancel", ("CancelNotification",)),
)
"""What an agent handles. `set_session_model` is of earlier releases, whose agents still have it."""

CLIENT_CALLS = (
    CallRow(
        "write_text_file", "fs/write_text_file", ("WriteTextFileRequest",), "WriteTextFileResponse", may_be_none=True
    ),
    CallRow("read_text_file", "fs/read_text_file", ("ReadTextFileRequest",), "ReadTextFileResponse"),
    CallRow(
        "request_permission", "session/request_permission", ("RequestPermissionRequest",), "RequestPermissionResponse"
    ),
    CallRow(
        "create_terminal", "terminal/create", ("CreateTerminalRequest",), "CreateTerminalResponse", is_optional=True
    ),
    CallRow(
        "terminal_output", "terminal/output", ("TerminalOutputRequest",), "TerminalOutputResponse", is_optional=True
    ),
    CallRow(
        "release_terminal",
        "terminal/release",
        ("ReleaseTerminalRequest",),
        "ReleaseTerminalResponse",
        may_be_none=True,
        is_optional=True,
        default={},
    ),
    CallRow(
        "wait_for_terminal_exit",
        "terminal/wait_for_exit",
        ("WaitForTerminalExitRequest",),
        "WaitForTerminalExitResponse",
        is_optional=True,
    ),
    CallRow(
        "kill_terminal",
        "terminal/kill",
        ("KillTerminalRequest",),
        "KillTerminalResponse",
        may_be_none=True,
        is_optional=True,
        default={},
    ),
    CallRow("session_update", "session/update", ("SessionNotification",)),
    CallRow("complete_elicitation", "elicitation/complete", ("CompleteElicitationNotification",), unstable=True),
)
"""What a client handles, besides `create_elicitation`, whose params are a union of models."""
