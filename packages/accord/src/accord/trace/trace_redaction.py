"""Redacts a trace for other people: secrets are replaced, on request all texts, and the replacements are counted. PURE.

A recording masks values that it recognises by the names of members. An export is for other people, so it searches
further: for tokens in all texts, and for options such as `--api-key` in commands. With `shape`, every text becomes as
many `x`; names of members, ids, kinds and states stay, so that the course of the conversation can still be read. The
header has the number of replacements.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from accord.redaction import MASK, mask_urls, masked
from accord.trace import TraceEvent
from accord.trace.trace_file import TraceHeader

SECRETS, TOKENS, TEXTS, OPTIONS = "secrets", "tokens", "texts", "options"
"""The counted replacements: values of secret members and URLs, tokens in texts, whole texts, and options of
commands.
"""

_TOKEN = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/-]{8,}=*"
)
_OPTION = re.compile(r"(?i)^--?[a-z-]*(?:key|token|secret|password|auth)[a-z-]*$")

_NEVER_REDACTED = frozenset(
    {
        "jsonrpc", "method", "id", "sessionId", "sessionUpdate", "toolCallId", "messageId", "terminalId", "planId",
        "subagentId", "compactionId", "requestId", "optionId", "modeId", "currentModeId", "methodId", "modelId", "type",
        "kind", "status", "state", "stopReason", "outcome", "action", "role", "priority", "mimeType", "version",
        "protocolVersion", "traceparent",
    }
)  # fmt: skip
"""Members whose strings stay with `shape`: they are ids and words of the protocol."""


class Redaction:
    """Replaces texts that other people must not read, and counts them."""

    def __init__(self, *, shape: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        """The number of replacements of each kind."""
        self._shape = shape

    def events(self, events: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
        """The same events, redacted."""
        for event in events:
            yield self._event(event)

    def header(self, header: TraceHeader) -> TraceHeader:
        """The header, redacted; made after the events, because it has the counts."""
        command = tuple(self._command(list(header.command)))
        peer = self._text(header.peer) if not header.command else " ".join(command)
        cwd = self._text(header.cwd)
        replaced = {what: count for what, count in sorted(self.counts.items()) if count}
        return msgspec.structs.replace(header, command=command, peer=peer, cwd=cwd, masked=True, redacted=replaced)

    def _event(self, event: TraceEvent) -> TraceEvent:
        frame = None if event.frame is None else self._frame(event.frame)
        note = None if event.note is None else self._text(event.note)
        stderr = None if event.stderr is None else self._text(event.stderr)
        process = None if event.process is None else dict(event.process)
        if process is not None and isinstance(words := process.get("command"), list):
            process["command"] = self._command([str(word) for word in cast("list[Any]", words)])
        return TraceEvent(
            event.time, event.direction, frame, None, note, event.hop, event.link, stderr=stderr, process=process
        )

    def _frame(self, frame: bytes) -> bytes:
        if (shown := masked(frame)) is not None:
            self.counts[SECRETS] += max(1, shown.count(MASK.encode()) - frame.count(MASK.encode()))
            frame = shown
        text = self._without_tokens(frame.decode("utf-8", "replace"))
        if not self._shape:
            return text.encode()
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self._shaped_text(text).encode()
        return json.dumps(self._shaped(value), separators=(",", ":")).encode()

    def _text(self, text: str) -> str:
        shown = self._without_tokens(mask_urls(text))
        self.counts[SECRETS] += max(0, shown.count(MASK) - text.count(MASK))
        return self._shaped_text(shown) if self._shape else shown

    def _command(self, words: Sequence[str]) -> list[str]:
        shown: list[str] = []
        hides = False
        for word in words:
            name, is_set, _ = word.partition("=")
            if hides or (is_set and _OPTION.match(name)):
                self.counts[OPTIONS] += 1
                shown.append(MASK if hides else f"{name}={MASK}")
                hides = False
                continue
            hides = _OPTION.match(word) is not None
            shown.append(self._without_tokens(mask_urls(word)))
        return shown

    def _without_tokens(self, text: str) -> str:
        shown, count = _TOKEN.subn(MASK, text)
        self.counts[TOKENS] += count
        return shown

    def _shaped(self, top: Any) -> Any:
        """The value with its texts replaced. No recursion: a message may be nested deeper than Python's stack."""
        holder: list[Any] = [top]
        waiting: list[Any] = [holder]
        while waiting:
            value = waiting.pop()
            for key, member in _members(value):
                if isinstance(member, dict | list):
                    waiting.append(member)
                elif isinstance(member, str) and key not in _NEVER_REDACTED:
                    value[key] = self._shaped_text(member)
        return holder[0]

    def _shaped_text(self, text: str) -> str:
        self.counts[TEXTS] += bool(text)
        return re.sub(r"\S", "x", text)


def _members(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).items())
    return list(enumerate(cast("list[Any]", value)))
