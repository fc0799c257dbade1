"""What a message means, in few words: `tool_call edit "README.md" completed` in place of `session/update`. PURE.

Messages of both versions of the protocol are read as plain JSON, with no type: a trace may hold anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

NAMED = ("title", "name", "message", "command", "path", "uri", "url", "query", "methodId", "modeId", "terminalId")
"""Members that say what a message is about, the best first."""
LONGEST = 2_000
"""Characters of a text that are kept."""


def body_of(value: Any) -> Mapping[str, Any]:
    """This JSON value if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def meaning(method: str, params: Mapping[str, Any]) -> str:
    """A request or notification, without the method, which is shown beside it."""
    if method == "session/update":
        return update_meaning(body_of(params.get("update")))
    if method in ("session/prompt", "session/inject"):
        return text_of(params.get("prompt"))
    if method == "initialize":
        who = body_of(params.get("clientInfo") or params.get("info"))
        return _joined(f"version {params.get('protocolVersion', '?')}", _named_version(who))
    if method == "session/request_permission":
        options = [str(body_of(it).get("optionId", "")) for it in _list(params.get("options"))]
        return _joined(_named(body_of(params.get("toolCall"))), f"({', '.join(options)})" if options else "")
    if method in ("session/new", "session/load", "session/resume"):
        return _text(params.get("cwd"))
    if method == "terminal/create":
        return " ".join([_text(params.get("command")), *(_text(it) for it in _list(params.get("args")))])
    return _named(params)


def update_meaning(update: Mapping[str, Any]) -> str:
    """What a `session/update` tells, without its kind."""
    kind = _text(update.get("sessionUpdate"))
    if "message" in kind or "thought" in kind or kind.endswith("_chunk"):
        return text_of(update.get("content"))
    if kind in ("tool_call", "tool_call_update"):
        status = _text(update.get("status"))
        return _joined(_text(update.get("kind")), _named(update) or _text(update.get("toolCallId")), status)
    if kind == "plan":
        steps = [_text(body_of(it).get("content")) for it in _list(update.get("entries"))]
        done = sum(body_of(it).get("status") == "completed" for it in _list(update.get("entries")))
        return f"{done}/{len(steps)}: {'; '.join(steps)}"
    if kind == "usage_update":
        return f"{update.get('used', '?')} of {update.get('size', '?')} tokens"
    if kind == "available_commands_update":
        return ", ".join(_text(body_of(it).get("name")) for it in _list(update.get("availableCommands")))
    state = update.get("state")
    return _joined(
        _text(body_of(state).get("state")) if isinstance(state, dict) else _text(state),
        _named(update),
        _text(update.get("currentModeId")),
        _text(update.get("status")),
        _text(update.get("stopReason")),
    )


def result_meaning(method: str, result: Mapping[str, Any]) -> str:
    """An answer in words."""
    if (outcome := result.get("outcome")) is not None:
        chosen = body_of(outcome)
        return _joined(_text(chosen.get("outcome") or outcome), _text(chosen.get("optionId")))
    if method == "initialize":
        who = body_of(result.get("agentInfo") or result.get("info"))
        return _joined(f"version {result.get('protocolVersion', '?')}", _named_version(who))
    if (reason := result.get("stopReason")) is not None:
        return _text(reason)
    if (sessions := result.get("sessions")) is not None:
        return f"{len(_list(sessions))} sessions"
    for name in ("content", "output", "action", "terminalId", "sessionId", "exitCode"):
        if (value := result.get(name)) is not None:
            return _text(value) if isinstance(value, str | int) else text_of(value)
    return "done" if not result else ", ".join(name for name in result if name != "_meta")


def text_of(content: Any) -> str:
    """The text of content blocks; other blocks are named by their type."""
    if isinstance(content, str):
        return content[:LONGEST]
    if isinstance(content, list):
        return " ".join(text_of(block) for block in cast("list[Any]", content)[:50])[:LONGEST]
    block = body_of(content)
    if (text := block.get("text")) is not None:
        return _text(text)
    inner = block.get("content")
    if inner is not None and block.get("type") == "content":
        return text_of(inner)
    return _joined(f"[{_text(block.get('type')) or 'nothing'}]", _text(block.get("uri") or block.get("path")))


def paths_in(body: Mapping[str, Any]) -> list[str]:
    """The files that a message names: its path, the places of a tool call, and its changes."""
    found = [body.get("path"), body_of(body.get("toolCall")).get("path")]
    for holder in (body, body_of(body.get("toolCall"))):
        for name in ("locations", "content"):
            found += [body_of(it).get("path") for it in _list(holder.get(name))]
    return [path for path in found if isinstance(path, str)]


def _named(body: Mapping[str, Any]) -> str:
    return next((_text(body[name]) for name in NAMED if isinstance(body.get(name), str)), "")


def _named_version(info: Mapping[str, Any]) -> str:
    return _joined(_text(info.get("name")), _text(info.get("version")))


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value)[:LONGEST]


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
