"""Conventions of claude-agent-acp, codex-acp and Accord's own agents outside of `_meta.jetbrains.air`.

| extension | agents | announced or sent in |
|---|---|---|
| `DisplayTerminals` | claude-agent-acp, codex-acp, as Zed has it | `_meta` of tool calls: `terminal_info` and others |
| `Steering` | claude-agent-acp from 0.66, codex-acp from 1.2 | `_meta.steering` of `initialize` |
| `RateLimits` | claude-agent-acp, for subscriptions of claude.ai | `_meta["_claude/rateLimit"]` of `usage_update` |
| `RewindFiles` | every agent written with Accord | nowhere: another agent answers that it has no such method |

The first three were tested with the real agents and a scripted model. In version 2 terminals are the protocol's own.
Claude Code reports rate limits with the token of a subscription only, each time that the headers
`anthropic-ratelimit-unified-*` change. Codex reads its own from `x-codex-*`, and codex-acp 2.6 has them for `/status`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, cast

from accord.errors import METHOD_NOT_FOUND, PeerError
from accord.schema.base import Json, Model, Request, Shape, Tolerant
from accord.schema.content import ContentBlock, TextContent
from accord.schema.extension import Extension, MetaMember
from accord.schema.shared_updates import Notice, UsageUpdate
from accord.services.file_service import RewindFilesRequest, RewindFilesResponse

OUTPUT_LIMIT = 1024 * 1024
"""Characters of one display terminal's output that are kept, from its end."""
MOST = 256
"""Display terminals of one session that are kept, the newest."""


# Display terminals


class DisplayTerminal:
    """A command that the agent runs and shows in a tool call: its output and its end."""

    def __init__(self, terminal_id: str) -> None:
        self.id = terminal_id
        """Its id, which the content of the tool call names."""
        self.cwd: str | None = None
        """The folder in which the command runs."""
        self.exit_code: int | None = None
        """The exit code of the command."""
        self.signal: str | None = None
        """The signal that ended the command."""
        self.has_ended = False
        """Whether the agent has said how the command ended."""
        self.forgotten = 0
        """How many of the first characters of the output were dropped."""
        self._text = io.StringIO()

    def __repr__(self) -> str:
        return f"DisplayTerminal({self.id!r}, {self._text.tell()} characters, ended={self.has_ended})"

    @property
    def text(self) -> str:
        """The output so far. It is untrusted: it may contain control codes for a terminal."""
        return self._text.getvalue()

    def add(self, text: str) -> None:
        """Append output."""
        self._text.write(text)
        if self._text.tell() > 2 * OUTPUT_LIMIT:
            self.replace(self._text.getvalue(), forgotten=self.forgotten)

    def replace(self, text: str, *, forgotten: int = 0) -> None:
        """Replace the output."""
        self.forgotten = forgotten + max(0, len(text) - OUTPUT_LIMIT)
        self._text = io.StringIO()
        self._text.write(text[-OUTPUT_LIMIT:])


class DisplayTerminals(Extension[dict[str, Any]], name="terminal_output"):
    """Commands that an agent runs and shows as terminals in its tool calls, by their ids.

    The state of a session keeps only the latest value of each key of `_meta`, so the deltas are folded here.

    >>> terminals = DisplayTerminals()
    >>> from accord.session import updates
    >>> def said(**meta):
    ...     return updates.ToolCallUpdate(updates.ToolCallId("call"), meta=meta)
    >>> terminals.fold(said(terminal_info={"terminal_id": "t"}))
    ['t']
    >>> terminals.fold(said(terminal_output_delta={"terminal_id": "t", "data": "ok"}))
    ['t']
    >>> terminals["t"].text
    'ok'
    """

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self._terminals: dict[str, DisplayTerminal] = {}

    @classmethod
    def declaration(cls, offer: dict[str, Json]) -> dict[str, Json]:  # noqa: ARG003
        """A client declares it with a plain `true`."""
        return {cls.name: True}

    def __getitem__(self, terminal_id: str) -> DisplayTerminal:
        """The terminal with this id; raises KeyError for one that the agent has not shown."""
        return self._terminals[terminal_id]

    def get(self, terminal_id: str) -> DisplayTerminal | None:
        """Return the terminal with this id; None if the agent has not shown it."""
        return self._terminals.get(terminal_id)

    def __len__(self) -> int:
        """Return how many terminals are kept."""
        return len(self._terminals)

    def fold(self, update: object) -> list[str]:
        """Fold an update about display terminals; returns the ids of those that changed."""
        meta = getattr(update, "meta", None)
        if not meta or not isinstance(meta, dict):
            return []
        changed: list[str] = []
        for key, fold in _FOLDS.items():
            said = cast("dict[str, Any]", meta).get(key)
            if isinstance(said, dict) and isinstance(its_id := cast("dict[str, Any]", said).get("terminal_id"), str):
                fold(self._terminal(its_id), cast("dict[str, Any]", said))
                changed.append(its_id)
        return list(dict.fromkeys(changed))

    def _terminal(self, terminal_id: str) -> DisplayTerminal:
        found = self._terminals.get(terminal_id)
        if found is None:
            found = self._terminals[terminal_id] = DisplayTerminal(terminal_id)
            if len(self._terminals) > MOST:
                del self._terminals[next(iter(self._terminals))]
        return found


def _fold_info(terminal: DisplayTerminal, said: Mapping[str, Any]) -> None:
    terminal.cwd = _text(said.get("cwd")) or terminal.cwd


def _fold_output(terminal: DisplayTerminal, said: Mapping[str, Any]) -> None:
    terminal.replace(_text(said.get("data")) or "")


def _fold_delta(terminal: DisplayTerminal, said: Mapping[str, Any]) -> None:
    terminal.add(_text(said.get("data")) or "")


def _fold_exit(terminal: DisplayTerminal, said: Mapping[str, Any]) -> None:
    code = said.get("exit_code")
    terminal.exit_code = code if isinstance(code, int) else None
    terminal.signal = _text(said.get("signal"))
    terminal.has_ended = True


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_FOLDS: dict[str, Callable[[DisplayTerminal, Mapping[str, Any]], None]] = {
    "terminal_info": _fold_info,
    "terminal_output": _fold_output,
    "terminal_output_delta": _fold_delta,
    "terminal_exit": _fold_exit,
}


# Steering

Steered: TypeAlias = Literal["injected", "startedNewTurn", "failed", "promptRequired"]
"""The result of steering: added to the running turn, a new turn, not possible now, or to be sent as a prompt."""

_STEERED: dict[str, Steered] = {
    "injected": "injected",
    "startedNewTurn": "startedNewTurn",
    "failed": "failed",
    "promptRequired": "promptRequired",
}


class SteeringOffer(Shape):
    """The declaration of an agent that accepts messages into the running turn."""

    supported: bool = True


class SteeringResponse(Model):
    """The result of a message for the running turn."""

    outcome: Tolerant[str] = "failed"


class SteeringRequest(Request[SteeringResponse], method="_session/steering"):
    """Send a message into the turn that runs in a session."""

    session_id: str
    prompt: list[ContentBlock]


class Steering(Extension[SteeringOffer], name="steering"):
    """Messages into the running turn; `offer` is None for an agent that accepts none."""

    messages = (SteeringRequest,)
    is_in_answer = True

    @classmethod
    def declaration(cls, offer: SteeringOffer) -> dict[str, Json]:
        """Return an agent's declaration, with its default value."""
        return {cls.name: {"supported": offer.supported}}

    @classmethod
    def declared_in(cls, meta: Mapping[str, Json]) -> SteeringOffer | None:
        """The agent declares it with `supported`, which is to be true."""
        offer = super().declared_in(meta) if isinstance(meta.get(cls.name), dict) else None
        return offer if offer is not None and offer.supported else None

    async def steer(self, *content: str | ContentBlock) -> Steered:
        """Send a message into the running turn.

        An unknown outcome counts as `failed`: send the message as a prompt then.
        """
        blocks = [TextContent(it) if isinstance(it, str) else it for it in content]
        return _STEERED.get((await self.request(SteeringRequest(self.session_id, blocks))).outcome, "failed")


# Rate limits


class RateLimit(Shape):
    """The usage of one limit of a claude.ai subscription."""

    status: str
    """`allowed`, `allowed_warning` or `rejected`."""
    rate_limit_type: Tolerant[str] = ""
    """Which limit: `five_hour`, `seven_day` and others."""
    utilization: Tolerant[float | None] = None
    """The used part of it: 1 is all."""
    resets_at: Tolerant[float | None] = None
    """When it is reset, in seconds since 1970."""
    is_using_overage: Tolerant[bool] = False
    """Whether present usage is paid for beyond the subscription."""

    def __str__(self) -> str:
        parts = [self.rate_limit_type.replace("_", " ") or "rate limit"]
        if self.utilization is not None:
            parts.append(f"{self.utilization:.0%} used")
        if self.resets_at is not None:
            parts.append(f"begins again at {datetime.fromtimestamp(self.resets_at, UTC):%Y-%m-%d %H:%M} UTC")
        return ", ".join(parts)


class RateLimits(Extension[dict[str, Any]], name="_claude/rateLimit"):
    """The limits of the user's subscription, as claude-agent-acp last reported them, by their types."""

    label = "Limits"
    limit = MetaMember(RateLimit, "_claude/rateLimit")

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.limits: dict[str, RateLimit] = {}
        """The latest value of each limit."""

    @classmethod
    def declaration(cls, offer: dict[str, Json]) -> dict[str, Json]:  # noqa: ARG003
        """Return None: neither side declares it, because the agent sends it to every client."""
        return {}

    def fold(self, update: object) -> None:
        """Take the limit that an update of the usage carries."""
        if isinstance(update, UsageUpdate) and (found := self.limit.of(update)) is not None:
            self.limits = {**self.limits, found.rate_limit_type: found}

    @classmethod
    def notice(cls, update: object) -> Notice | None:
        """A limit that is nearly or wholly used."""
        found = cls.limit.of(update) if isinstance(update, UsageUpdate) else None
        if found is None or found.status == "allowed":
            return None
        if found.status == "rejected":
            return Notice("error", "A rate limit is reached", str(found))
        return Notice("warning", "A rate limit is nearly reached", str(found))

    @property
    def summary(self) -> str | None:
        """The limits that are nearly or wholly used."""
        return "; ".join(str(it) for it in self.limits.values() if it.status != "allowed") or None


# Files as they were


class RewindFiles(Extension[dict[str, Any]], name="accord.dev/rewindFiles"):
    """Restores files that an agent written with Accord has changed without the client."""

    messages = (RewindFilesRequest,)

    @classmethod
    def declaration(cls, offer: dict[str, Json]) -> dict[str, Json]:  # noqa: ARG003
        """Return None: neither side declares it, because other agents answer that they have no such method."""
        return {}

    @classmethod
    def declared_in(cls, meta: Mapping[str, Json]) -> dict[str, Json]:  # noqa: ARG003
        """Return true for any agent, because none declares it."""
        return {}

    async def rewind(self, cursor_id: str | None = None, *, overwrite: bool = False) -> RewindFilesResponse | None:
        """Restore the files that the agent wrote without the client, as they were before the message at a cursor.

        Without a cursor, all that it wrote in the session is restored. Files that others have changed since are left,
        unless `overwrite` is true. Returns None if the agent cannot do it.
        """
        try:
            return await self.request(RewindFilesRequest(self.session_id, cursor_id, overwrite))
        except PeerError as error:
            if error.code == METHOD_NOT_FOUND:
                return None
            raise
