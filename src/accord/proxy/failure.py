"""`Failure`: a component of a chain that has ended, and what every request that needed it is answered. PURE."""

from __future__ import annotations

from typing import Any

import msgspec

from accord.errors import INTERNAL_ERROR, ConnectionClosed
from accord.jsonrpc.frames import RequestId
from accord.jsonrpc.messages import error_answer

STDERR = 4_000
"""Characters of a component's standard error that an answer has at most, from its end."""


class Failure(msgspec.Struct, frozen=True):
    """Which component ended, and why."""

    component: str
    """Its place and its name: `proxy 1 (house-rules)`."""
    reason: str
    """One of the words of `ConnectionClosed.reason`."""
    text: str
    """For people, on one line."""
    exit_code: int | None = None
    stderr: str = ""

    @classmethod
    def of(cls, component: str, error: ConnectionClosed) -> Failure:
        """The failure of a component whose link ended like this."""
        text = str(error).replace("the agent's process", "its process").replace("the agent closed", "it closed")
        return cls(component, error.reason, " ".join(text.split()), error.exit_code, error.stderr)

    def __str__(self) -> str:
        return f"{self.component}: {self.text}"

    def answer(self, request_id: RequestId, method: str) -> bytes:
        """The frame that answers a request which needed the component."""
        data: dict[str, Any] = {"component": self.component, "reason": self.reason, "method": method}
        if self.exit_code is not None:
            data["exitCode"] = self.exit_code
        if self.stderr.strip():
            data["stderr"] = self.stderr[-STDERR:]
        return error_answer(request_id, INTERNAL_ERROR, str(self), data)
