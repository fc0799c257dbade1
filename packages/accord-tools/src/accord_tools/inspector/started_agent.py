"""`StartedAgent`: an agent that the inspector has started, to which its page may send messages.

The page gets the methods of the protocol with the JSON Schema of their params, and makes a form of each. Its messages
are sent unchanged: nothing is added, and a mistake reaches the agent. The trace that the page shows records them. A
client without files, terminals and permissions holds the connection, so the agent can do nothing here that its own
process could not.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import accord
from accord.schema.codec import loads
from accord.schema.describe import json_schema

LONGEST = 16 * 1024 * 1024
"""Bytes of a message that the page sends."""


class StartedAgent:
    """The agent at the end of a connection that the inspector holds, and the trace of that connection."""

    def __init__(self, remote: accord.RemoteAgent, folder: str) -> None:
        self._remote = remote
        self._folder = str(Path(folder).absolute())

    def plain(self) -> dict[str, Any]:
        """The schemas from which the page makes its forms."""
        definitions: dict[str, Any] = json_schema(self._remote.version)["$defs"]  # pyright: ignore[reportAssignmentType]
        methods = [
            {"method": it["x-method"], "params": name, "answers": name.endswith("Request")}
            for name, it in definitions.items()
            if it.get("x-side") == "agent"
            and name.endswith(("Request", "Notification"))
            and it["x-method"] != "initialize"
        ]
        return {
            "methods": sorted(methods, key=lambda it: it["method"]),
            "definitions": definitions,
            "folder": self._folder,
        }

    async def send(self, message: bytes) -> dict[str, Any]:
        """Send the page's message, `{method, params, answers}`; returns the answer's `result` or `error`."""
        wanted: Any = loads(message)
        match wanted:
            case {"method": str(method), "answers": bool(answers)}:
                params = wanted.get("params")
            case _:
                raise accord.AccordError("a message to send must be an object with method, params and answers")
        if not answers:
            await self._remote.notify_raw(method, params)
            return {}
        try:
            return {"result": await self._remote.request_raw(method, params)}
        except accord.PeerError as error:
            return {"error": {"code": error.code, "message": error.message, "data": error.data}}


@asynccontextmanager
async def starting_agent(
    words: Sequence[str], cwd: str | None = None, env: Mapping[str, str | None] | None = None
) -> AsyncGenerator[tuple[StartedAgent, Path]]:
    """Start an agent and connect to it during the block; yields it with the trace of the connection."""
    with tempfile.TemporaryDirectory(prefix="accord-inspect-") as folder:
        trace = Path(folder) / "live.jsonl"
        client = accord.Client(name="accord-inspect", version=accord.__version__)
        async with accord.connect(words, client, cwd=cwd, env=env, trace=trace) as remote:
            yield StartedAgent(remote, cwd or "."), trace
