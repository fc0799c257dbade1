"""Describes a message in few words: `tool_call edit "README.md" → completed` instead of `session/update`. PURE.

    method, update, content ──▶ meaning: what it says, beside its method or its kind of update

The terminal, the inspector's page, spans and replays use these descriptions. Messages of both versions of the protocol
are read as plain JSON, without types: any member may be missing or of another type, and any text may be long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from msgspec import Raw

from accord.errors import DecodeError
from accord.schema.codec import loads

LONGEST = 2_000
"""Characters of a text that are kept."""
MOST_BLOCKS = 50
"""Content blocks of one message that are read."""
MOST_DEPTH = 12
"""How deep paths are looked for in a message."""

Members: TypeAlias = Mapping[str, Any]


def body_of(value: Any) -> dict[str, Any]:
    """Return this JSON value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def object_in(text: Raw | bytes | None) -> dict[str, Any]:
    """Return the object in this JSON text; an empty one if there is none, or it cannot be read."""
    try:
        return {} if text is None else body_of(loads(text))
    except DecodeError:
        return {}


def items_of(value: Any) -> list[Any]:
    """The items of a list; empty for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def word_of(value: Any) -> str:
    """A text or a number as text; empty for anything else."""
    return str(value)[:LONGEST] if isinstance(value, str | int | float) else ""


def meaning(method: str, update: str, params: Members) -> str:
    """Describe a request or notification; `update` is the kind of a `session/update`.

    >>> meaning("session/prompt", "", {"prompt": [{"type": "text", "text": "Fix it"}]})
    'Fix it'
    """
    if method == "session/update":
        return update_meaning(update, body_of(params.get("update")))
    return _REQUESTS.get(method, _named)(params)[:LONGEST]


def update_meaning(kind: str, update: Members) -> str:
    """Describe a session update of this kind."""
    return _UPDATES.get(kind, _other_update)(update)[:LONGEST]


def result_meaning(method: str, result: Members) -> str:
    """The meaning of a request's result."""
    return _ANSWERS.get(method, _other_result)(result)[:LONGEST]


def error_meaning(error: Members) -> str:
    """Describe an error: its code and its text."""
    return _joined(word_of(error.get("code")), word_of(error.get("message")))


def text_of(content: Any) -> str:
    """The text of content blocks; other blocks are named."""
    if isinstance(content, str):
        return content[:LONGEST]
    if isinstance(content, list):
        return " ".join(text_of(block) for block in items_of(content)[:MOST_BLOCKS])[:LONGEST]
    block = body_of(content)
    if (text := block.get("text")) is not None:
        return word_of(text)
    if block.get("type") == "content":
        return text_of(body_of(block.get("content")))
    inner = body_of(block.get("resource"))
    named = _joined(word_of(block.get("name") or block.get("uri") or inner.get("uri") or block.get("path")))
    return f"[{_joined(word_of(block.get('type')) or '?', named)}]"


def tool_names(content: Members) -> Iterator[str]:
    """Return the words by which a tool call is found: its kind, title, name and id; nothing for other messages."""
    call = body_of(content.get("toolCall")) or content
    if "toolCallId" in call:
        yield from filter(None, (word_of(call.get(name)) for name in ("kind", "title", "name", "toolCallId")))


def statuses(content: Members) -> Iterator[str]:
    """Return the states in a message: of a tool call, of a turn."""
    for holder in (content, body_of(content.get("toolCall"))):
        yield from filter(None, (word_of(holder.get(name)) for name in ("status", "stopReason", "state")))


def paths_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Return every `path` in a message: of a file, of the places of a tool call, of its changes."""
    if depth > MOST_DEPTH:
        return
    for name, member in body_of(value).items():
        if name == "path" and isinstance(member, str):
            yield member
        else:
            yield from paths_in(member, depth + 1)
    for item in items_of(value)[:1_000]:
        yield from paths_in(item, depth + 1)


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _names(value: Any) -> str:
    return ", ".join(filter(None, (word_of(body_of(item).get("name")) for item in items_of(value)[:MOST_BLOCKS])))


def _member(name: str) -> Callable[[Members], str]:
    return lambda body: word_of(body.get(name))


NAMED = ("title", "name", "message", "command", "path", "uri", "url", "query", "methodId", "modeId", "terminalId")
"""Members that describe a message of an unknown method, the best first."""


def _named(body: Members) -> str:
    return next((word_of(body[name]) for name in NAMED if isinstance(body.get(name), str)), "")


# Updates


def _tool(update: Members) -> str:
    title, status = word_of(update.get("title")) or word_of(update.get("toolCallId")), word_of(update.get("status"))
    paths = [word_of(body_of(location).get("path")) for location in items_of(update.get("locations"))[:3]]
    more = [path for path in paths if path and path.rsplit("/", 1)[-1] not in title]
    return _joined(word_of(update.get("kind")), title, *more, f"→ {status}" if status else "")


def _plan(update: Members) -> str:
    steps = [
        body_of(it) for it in items_of(update.get("entries")) or items_of(body_of(update.get("plan")).get("entries"))
    ]
    done = sum(step.get("status") == "completed" for step in steps)
    current = next((word_of(step.get("content")) for step in steps if step.get("status") == "in_progress"), "")
    return f"{done} of {len(steps)} steps{': ' if current else ''}{current}"


def _options(update: Members) -> str:
    chosen = [body_of(it) for it in items_of(update.get("configOptions"))[:10]]
    return ", ".join(
        f"{word_of(it.get('id') or it.get('configId'))} = {word_of(it.get('currentValue'))}" for it in chosen
    )


def _usage(update: Members) -> str:
    cost = body_of(update.get("cost"))
    used = f"{word_of(update.get('used')) or '?'} of {word_of(update.get('size')) or '?'} tokens"
    return _joined(used, word_of(cost.get("amount")), word_of(cost.get("currency")))


def _content(update: Members) -> str:
    return text_of(update.get("content"))


def _other_update(update: Members) -> str:
    return _named(update) or (_content(update) if "content" in update else "")


_UPDATES: dict[str, Callable[[Members], str]] = {
    **dict.fromkeys(("user_message_chunk", "agent_message_chunk", "agent_thought_chunk"), _content),
    **dict.fromkeys(("user_message", "agent_message", "agent_thought"), _content),
    **dict.fromkeys(("tool_call", "tool_call_update"), _tool),
    **dict.fromkeys(("plan", "plan_update"), _plan),
    "tool_call_content_chunk": _content,
    "available_commands_update": lambda update: _names(update.get("availableCommands")),
    "current_mode_update": _member("currentModeId"),
    "config_option_update": _options,
    "session_info_update": _member("title"),
    "usage_update": _usage,
    "state_update": lambda update: _joined(word_of(update.get("state")), word_of(update.get("stopReason"))),
    "terminal_update": lambda update: word_of(update.get("command")) or word_of(update.get("terminalId")),
    "terminal_output_chunk": _member("terminalId"),
}


# Requests and notifications


def _handshake(side: str) -> Callable[[Members], str]:
    def words(body: Members) -> str:
        info = body_of(body.get(side)) or body_of(body.get("info"))
        version = f"version {word_of(body.get('protocolVersion')) or '?'}"
        return _joined(version, word_of(info.get("name")), word_of(info.get("version")))

    return words


def _permission(params: Members) -> str:
    call = body_of(params.get("toolCall"))
    return f"{word_of(call.get('title')) or word_of(call.get('toolCallId'))}: {_names(params.get('options'))}"


def _command(params: Members) -> str:
    return _joined(word_of(params.get("command")), *(word_of(word) for word in items_of(params.get("args"))[:20]))


def _opening(params: Members) -> str:
    servers = _names(params.get("mcpServers"))
    return word_of(params.get("cwd")) + (f", MCP: {servers}" if servers else "")


_REQUESTS: dict[str, Callable[[Members], str]] = {
    "initialize": _handshake("clientInfo"),
    **dict.fromkeys(("session/new", "session/load", "session/resume", "session/fork"), _opening),
    **dict.fromkeys(("session/prompt", "session/inject"), lambda params: text_of(params.get("prompt"))),
    "session/set_mode": _member("modeId"),
    "session/set_model": _member("modelId"),
    "session/set_config_option": lambda it: f"{word_of(it.get('configId'))} = {word_of(it.get('value'))}",
    "session/request_permission": _permission,
    "terminal/create": _command,
    "$/cancel_request": lambda params: f"request {word_of(params.get('requestId'))}",
}


# Results


def _outcome(result: Members) -> str:
    outcome = body_of(result.get("outcome"))
    return _joined(word_of(outcome.get("outcome") or result.get("outcome")), word_of(outcome.get("optionId")))


def _exit(result: Members) -> str:
    status = body_of(result.get("exitStatus")) or result
    code, signal = status.get("exitCode"), status.get("signal")
    return f"exit code {word_of(code)}" if code is not None else f"signal {word_of(signal)}" if signal else "running"


def _other_result(result: Members) -> str:
    for name in ("stopReason", "action", "terminalId", "sessionId"):
        if name in result:
            return word_of(result[name])
    return ", ".join(name for name in result if name != "_meta") or "done"


_ANSWERS: dict[str, Callable[[Members], str]] = {
    "initialize": _handshake("agentInfo"),
    "session/list": lambda result: f"{len(items_of(result.get('sessions')))} sessions",
    "session/prompt": _member("stopReason"),
    "session/request_permission": _outcome,
    "fs/read_text_file": lambda result: f"{len(str(result.get('content', ''))):,} characters",
    "terminal/output": _exit,
    "terminal/wait_for_exit": _exit,
}
