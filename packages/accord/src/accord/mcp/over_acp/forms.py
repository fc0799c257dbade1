"""The forms of `mcp/message`: how an MCP message is put into a message of ACP, and taken out. PURE.

    by request      {serverId, requestId, method, params}    the pinned schema: requests from the agent,
                                                             notifications from the provider, no handshake
    by connection   {connectionId, method, params}           the proposal's page: both ways, after `mcp/connect`

By request, an error of the MCP server is part of a successful answer. By connection it is the answer's error.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from accord.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, PeerError, ProtocolError, RequestError
from accord.schema.base import Json

MESSAGE, CONNECT, DISCONNECT = "mcp/message", "mcp/connect", "mcp/disconnect"

LIMIT_REACHED, NO_SUCH_SERVER, SERVER_FAILED = -33000, -33001, -33002
"""Codes of errors of the way to an MCP server, as opposed to the server's own errors."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

Params = dict[str, Any]


class Refused(Exception):
    """The other side answered an MCP request with an error."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Form(Protocol):
    """How the messages of one line are written."""

    def request(self, request_id: str | int, method: str, params: Params | None) -> Params:
        """The params of the `mcp/message` that carries this request."""
        ...

    def notification(self, related: str | int | None, method: str, params: Params | None) -> Params | None:
        """The params of the `mcp/message` that carries this notification; None if there is no place for it."""
        ...

    def result(self, answer: Json) -> Params:
        """The MCP result in an answer; raises Refused for an error, ProtocolError for anything else."""
        ...

    def answer(self, result: Params) -> Params:
        """The answer to `mcp/message` that carries this MCP result."""
        ...

    def refusal(self, refused: Refused) -> Params:
        """The answer that carries this MCP error; raises RequestError where it is the answer's own error."""
        ...


class ByConnection:
    """The form of the proposal's page: each message names its connection, and both sides send requests."""

    def __init__(self, connection_id: str) -> None:
        self.connection_id = connection_id

    def request(self, request_id: str | int, method: str, params: Params | None) -> Params:  # noqa: ARG002
        return _message({"connectionId": self.connection_id}, method, params)

    def notification(self, related: str | int | None, method: str, params: Params | None) -> Params:  # noqa: ARG002
        return _message({"connectionId": self.connection_id}, method, params)

    def result(self, answer: Json) -> Params:
        return _object(answer)

    def answer(self, result: Params) -> Params:
        return result

    def refusal(self, refused: Refused) -> Params:
        raise RequestError(refused.code, refused.message, refused.data)


class ByRequest:
    """The form of the pinned schema: each message names its server and the request that it belongs to."""

    def __init__(self, server_id: str, line: str = "") -> None:
        self.server_id = server_id
        self._prefix = line
        """Begins the ids of requests, so that two lines to one server never use the same."""

    def request_id(self, inner: str | int) -> str:
        """The id on the wire of a request that the official package knows by `inner`."""
        return f"{self._prefix}{inner}"

    def request(self, request_id: str | int, method: str, params: Params | None) -> Params:
        return _message({"serverId": self.server_id, "requestId": self.request_id(request_id)}, method, params)

    def notification(self, related: str | int | None, method: str, params: Params | None) -> Params | None:
        if related is None:
            return None
        return _message({"serverId": self.server_id, "requestId": str(related)}, method, params)

    def result(self, answer: Json) -> Params:
        fields = _object(answer)
        if "result" in fields:
            return _object(fields["result"])
        error = fields.get("error")
        if not isinstance(error, dict):
            raise ProtocolError(f"{MESSAGE}: the answer must have a result or an error")
        told = cast("Params", error)
        raise Refused(_code(told.get("code")), str(told.get("message") or "no message"), told.get("data"))

    def answer(self, result: Params) -> Params:
        return {"result": result}

    def refusal(self, refused: Refused) -> Params:
        error: Params = {"code": refused.code, "message": refused.message}
        return {"error": error if refused.data is None else error | {"data": refused.data}}


def enveloped(params: Params | None, version: str) -> Params:
    """These params of a request with the members of `_meta` that MCP requires; a version that is there stays."""
    known: Params = dict(params or {})
    meta = known.get("_meta")
    if meta is not None and not isinstance(meta, dict):
        raise RequestError.invalid_params("_meta must be an object", path="$.params._meta")
    said = cast("Params", meta or {})
    defaults: Params = {VERSION_KEY: version, CAPABILITIES_KEY: {}, CLIENT_KEY: {"name": "unknown", "version": "0"}}
    return known | {"_meta": defaults | said}


def wants_connection(error: PeerError) -> bool:
    """Whether this error says that the other side knows only the form by connection."""
    if error.code == METHOD_NOT_FOUND:
        return True
    return error.code == INVALID_PARAMS and "connectionId" in f"{error.message} {error.data}"


def text_of(params: Params, *keys: str) -> str | None:
    """The text under the first of these keys that holds one."""
    return next((value for key in keys if isinstance(value := params.get(key), str)), None)


def inner_of(params: Params) -> tuple[str, Params | None]:
    """The method and the params of the MCP message; raises RequestError for a bad envelope."""
    method, inner = params.get("method"), params.get("params")
    if not isinstance(method, str):
        raise RequestError.invalid_params(f"{MESSAGE}: method must be a string", path="$.method")
    if inner is not None and not isinstance(inner, dict):
        raise RequestError.invalid_params(f"{MESSAGE}: params must be an object or absent", path="$.params")
    return method, cast("Params | None", inner)


def _message(address: Params, method: str, params: Params | None) -> Params:
    message = address | {"method": method}
    return message if params is None else message | {"params": params}


def _object(value: Any) -> Params:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ProtocolError(f"{MESSAGE}: the result must be an object")
    return cast("Params", value)


def _code(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else INTERNAL_ERROR
