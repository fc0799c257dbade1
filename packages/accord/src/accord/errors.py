"""Every exception of Accord, and the end of a program's standard error as its note.

AccordError
├── ProtocolError          the other side broke the protocol
│   └── DecodeError        a value does not have the shape the protocol gives it (also a ValueError)
├── EncodeError            our value cannot be written as JSON (also a TypeError)
├── ConversionError        a value of one version cannot be expressed in the other (also a ValueError)
├── PeerError              the other side answered our request with an error
├── RequestError           what a handler raises to answer with an error of its choosing
├── ConnectionClosed       the connection has ended, and why
├── CapabilityMissing      the other side did not declare that it can do this
├── McpServerError         an MCP server of a session did not do what was asked
├── Timeout                a deadline passed (also a TimeoutError)
├── ConfigurationError     a file that the user wrote is invalid (also a ValueError)
├── StoreError             a store of sessions cannot do what it was asked
├── StaleSuggestion        a suggestion was accepted for a document that has changed since
├── OutputError            an answer does not fit the type of `output=` (also a ValueError)
└── Overflow               a reader fell too far behind and its updates were dropped
"""

from __future__ import annotations

from typing import Any, Literal

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
UNSUPPORTED_VERSION = -32022

EndReason = Literal["closed", "peer_closed", "broken", "process_ended", "died_at_start", "failed", "unresponsive"]
"""Why a connection ended: we closed it; they closed it; the pipe or socket broke; their process ended; it ended before
it answered `initialize`; something of ours failed; they stopped reading or answering.
"""

StoreTrouble = Literal[
    "newer_format",
    "not_a_store",
    "damaged",
    "exists",
    "gone",
    "taken",
    "cursor",
    "busy",
    "full",
    "replaced",
    "failed",
]
"""The fault: a newer Accord wrote the file; it is something else; it is damaged; the session exists already, does not
exist, or was resumed elsewhere; a page's cursor is invalid; other programs kept the file locked; its disk is full; the
file was deleted or replaced while it was open; it cannot be read or written.
"""


class AccordError(Exception):
    """The root of every exception that Accord raises on purpose."""

    safe_to_tell: bool = False
    """Whether the peer may read the text: then it answers the request whose handler raised the error.

    Other errors may name paths, addresses or keys of this side. The peer gets "Internal error" instead.
    """

    def may_be_told(self, peer: object) -> bool:  # noqa: ARG002
        """Whether this peer may read the text; `peer` identifies its connection."""
        return self.safe_to_tell


class ProtocolError(AccordError):
    """The other side broke the protocol."""


class DecodeError(ProtocolError, ValueError):
    """A value does not have the shape that the protocol gives it.

    `path` uses the names of the wire (`$.update.content.text`), `problem` is the fault there.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{problem} at {path}")
        self.path = path
        """The path to the value, in the names of the wire."""
        self.problem = problem
        """The fault at that place."""


class EncodeError(AccordError, TypeError):
    """Our value cannot be written as JSON."""


class ConversionError(AccordError, ValueError):
    """A value of one version of the protocol cannot be expressed in the other.

    `what` names the value or the field, `version` is the version that cannot express it.
    """

    def __init__(self, what: str, version: int, reason: str) -> None:
        super().__init__(f"{what} cannot be expressed in version {version}: {reason}")
        self.what = what
        self.version = version
        self.reason = reason


class PeerError(AccordError):
    """The other side answered our request with an error.

    If the other side is an agent's process that we started, `stderr` is the end of its standard error, which is also a
    note of the exception.
    """

    def __init__(self, method: str, code: int, message: str, data: Any = None, *, said_by: object = None) -> None:
        detail = "" if data is None else f" ({_brief(data)})"
        super().__init__(f"{method}: {message} [{code}]{detail}")
        self.method = method
        """The method of our request."""
        self.code = code
        """The error's code, as the other side sent it."""
        self.message = message
        """The error's text, as the other side sent it."""
        self.data = data
        """Further data from the other side; None if there is none."""
        self.stderr = ""
        """The end of the standard error of the agent's process; empty if nothing was captured."""
        self.outcome: Any = None
        """The `Outcome` of the turn that failed with this error, with its results so far; None for any other."""
        self._said_by = said_by

    def may_be_told(self, peer: object) -> bool:
        """Whether this peer may read the text: only the peer that sent it."""
        return self.safe_to_tell or (peer is not None and self._said_by is peer)


class RequestError(AccordError):
    """Raised by a handler to answer a request with this error.

    >>> raise RequestError.invalid_params("cwd must be an absolute path", path="$.cwd")
    Traceback (most recent call last):
    accord.errors.RequestError: cwd must be an absolute path [-32602]
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} [{code}]")
        self.code = code
        """The error's code."""
        self.message = message
        """The error's text, for people."""
        self.data = data
        """Further data, as JSON; None if there is none."""

    @classmethod
    def parse_error(cls, message: str = "Parse error", **data: Any) -> RequestError:
        """Return the error for text in the request that is not JSON, or not the right JSON (-32700); `data` has
        details.
        """
        return cls(PARSE_ERROR, message, data or None)

    @classmethod
    def invalid_request(cls, message: str = "Invalid request", **data: Any) -> RequestError:
        """Return the error for a request that cannot be handled as it is (-32600); `data` has details."""
        return cls(INVALID_REQUEST, message, data or None)

    @classmethod
    def method_not_found(cls, method: str) -> RequestError:
        """Return the error for a method without a handler (-32601)."""
        return cls(METHOD_NOT_FOUND, "Method not found", {"method": method})

    @classmethod
    def invalid_params(cls, message: str = "Invalid params", **data: Any) -> RequestError:
        """Return the error for invalid params (-32602); `data` has details, such as the `path` of the wrong value."""
        return cls(INVALID_PARAMS, message, data or None)

    @classmethod
    def internal(cls, message: str = "Internal error", **data: Any) -> RequestError:
        """Return the error for a failed request (-32603); `data` has details. It is sent, so it must hold no
        secrets.
        """
        return cls(INTERNAL_ERROR, message, data or None)

    @classmethod
    def auth_required(cls, message: str = "Authentication required", **data: Any) -> RequestError:
        """The user has to log in first (-32000)."""
        return cls(AUTH_REQUIRED, message, data or None)

    @classmethod
    def not_found(cls, message: str = "Resource not found", **data: Any) -> RequestError:
        """A session, a file or something else does not exist (-32002)."""
        return cls(NOT_FOUND, message, data or None)

    @classmethod
    def cancelled(cls, message: str = "Request cancelled", **data: Any) -> RequestError:
        """The request was cancelled (-32800)."""
        return cls(REQUEST_CANCELLED, message, data or None)


class ConnectionClosed(AccordError):
    """The connection has ended.

    `reason` is one of a fixed set of words, for programs; the text is for people. If the other side was a process,
    `exit_code` (negative: the signal that ended it) and the tail of its `stderr` show what happened to it.
    """

    def __init__(self, reason: EndReason, detail: str = "", *, exit_code: int | None = None, stderr: str = "") -> None:
        text = detail or _END_TEXTS[reason]
        if exit_code is not None:
            text += f" (exit code {exit_code})" if exit_code >= 0 else f" (killed by signal {-exit_code})"
        if last_words := stderr.strip():
            text += f": {_brief(last_words.splitlines()[-1])}"
        super().__init__(text)
        self.reason: EndReason = reason
        """Why the connection ended, as one of a fixed set of words."""
        self.exit_code = exit_code
        """The exit code of the agent's process, negative for a signal; None if it is unknown."""
        self.stderr = stderr
        """The end of the standard error of the agent's process."""
        add_note(self, stderr)


class CapabilityMissing(AccordError):
    """The other side never declared the capability that this call needs."""

    safe_to_tell = True  # it names a capability and an action of the protocol, and reveals nothing of this side

    def __init__(self, capability: str, action: str) -> None:
        super().__init__(f"{action} needs the capability {capability}, which the other side did not declare")
        self.capability = capability
        """The missing capability as a path, such as `session_capabilities.fork`."""
        self.action = action
        """The call that needs it."""


class McpServerError(AccordError):
    """An MCP server of a session cannot be reached, or a request to it failed."""

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(f"MCP server {server}: {problem}")
        self.server = server
        """The server's name."""
        self.problem = problem
        """A description of the error."""


class Timeout(AccordError, TimeoutError):
    """A deadline passed before the other side responded."""


class Overflow(AccordError):
    """A reader fell so far behind that its updates were dropped; see `Limits.reply` and `Limits.lane`."""


class ConfigurationError(AccordError, ValueError):
    """A file that the user wrote (rules, MCP servers) is invalid; the text names the place and the fault."""


class StoreError(AccordError):
    """An operation of a store of sessions failed; `reason` is one of a fixed set of words, for programs."""

    def __init__(self, reason: StoreTrouble, detail: str) -> None:
        super().__init__(detail)
        self.reason: StoreTrouble = reason
        """The fault, as one of a fixed set of words."""


class StaleSuggestion(AccordError):
    """A suggestion was accepted for a document that has changed since; ask for suggestions again."""


_END_TEXTS: dict[EndReason, str] = {
    "closed": "the connection was closed",
    "peer_closed": "the other side closed the connection",
    "broken": "the connection broke",
    "process_ended": "the agent's process ended",
    "died_at_start": "the agent's process ended before it answered",
    "failed": "the connection failed",
    "unresponsive": "the other side stopped responding",
}


def keep_stderr(error: PeerError, stderr: str) -> None:
    """Attach the end of the agent's standard error to the error of its answer, once."""
    if stderr and not error.stderr:
        error.stderr = shortened(stderr)
        add_note(error, error.stderr)


def _brief(value: object, limit: int = 300) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


MOST_LINES = 40
"""Lines of standard error that an exception carries: about the length of a traceback with an exception group."""

MOST_CHARACTERS = 8 * 1024
"""Characters of standard error that an exception carries."""


def last_lines(text: str, most: int = MOST_LINES, characters: int | None = None) -> list[str]:
    """Return the last lines of this text, without newlines and without blank lines at the end.

    `characters` limits their total length; the first line may be cut at its beginning.

    >>> last_lines("one\\ntwo\\nthree\\n\\n", most=2)
    ['two', 'three']
    """
    kept = text.rstrip()
    if characters is not None:
        kept = kept[-characters:]
    lines = kept.replace("\r\n", "\n").split("\n") if kept else []
    return lines[-most:] if most > 0 else []


def shortened(text: str) -> str:
    """The end of this text that an exception carries."""
    return "\n".join(last_lines(text, MOST_LINES, MOST_CHARACTERS))


def add_note(error: BaseException, stderr: str) -> None:
    """Add the end of an agent's standard error, if there is any, to an exception as a note for its traceback.

    Python prints notes to the terminal as they are, so control characters are made visible.
    """
    if lines := last_lines(stderr, MOST_LINES, MOST_CHARACTERS):
        from accord.printable import printable  # not needed before something fails

        shown = "".join(f"\n  {line}" for line in printable("\n".join(lines)).split("\n"))
        error.add_note(f"the last lines of the agent's standard error:{shown}")


class OutputError(AccordError, ValueError):
    """The agent's answer to a prompt with `output=` does not fit the type."""

    def __init__(self, problem: str, text: str, wanted: str | None = None) -> None:
        super().__init__(f"the answer does not fit {wanted or 'the type of output='}: {problem}")
        self.problem = problem
        """The mismatch: the path, the expected value there, and the value in the answer."""
        self.text = text
        """The whole answer."""
