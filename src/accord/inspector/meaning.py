"""A message in words: `tool_call edit README.md → completed`, and not `session/update`. PURE.

    method, update, message ──▶ what (a few words that say what kind it is), detail (what it says)

Messages come from peers: any member may be missing or of another type, and any text may be long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

LONGEST = 240
"""Characters of a detail. Rows are one line."""

Members: TypeAlias = dict[str, Any]


def members(value: Any) -> Members:
    """The members of an object; empty for anything else."""
    return cast("Members", value) if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The items of a list; empty for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def short(value: Any) -> str:
    """A value as a short text on one line."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float | bool) else ""
    return " ".join(text[: 4 * LONGEST].split())[:LONGEST]


def text_of(blocks: Any) -> str:
    """What content blocks say, in short: their text, and the kinds of the others."""
    return short(" ".join(_block(members(block)) for block in items(blocks)[:20]))


def raw_text_of(block: Any) -> str:
    """The text of one block, white space included."""
    text = members(block).get("text")
    return text if isinstance(text, str) else ""


def _block(block: Members) -> str:
    kind = block.get("type")
    if kind == "text":
        return short(block.get("text"))
    if kind == "resource_link":
        return f"[{short(block.get('name')) or short(block.get('uri'))}]"
    if kind == "resource":
        return f"[{short(members(block.get('resource')).get('uri'))}]"
    return f"[{short(kind) or '?'}]"


def describe(method: str, update: str, message: Members, *, is_answer: bool) -> tuple[str, str]:
    """What a message is, and what it says.

    >>> describe("session/cancel", "", {"params": {"sessionId": "s"}}, is_answer=False)
    ('session/cancel', '')
    """
    if is_answer:
        return f"{method or 'answer'} ✓" if "error" not in message else f"{method or 'answer'} ✗", _answer(
            method, message
        )
    params = members(message.get("params"))
    if update:
        return update, _UPDATES.get(update, _no_detail)(members(params.get("update")))
    return method, _REQUESTS.get(method, _no_detail)(params)


def _answer(method: str, message: Members) -> str:
    error = message.get("error")
    if error is not None:
        error = members(error)
        return short(f"{short(error.get('code'))} {short(error.get('message'))}")
    result = members(message.get("result"))
    return short(_ANSWERS.get(method, _no_detail)(result))


def _no_detail(_: Members) -> str:
    return ""


def _tool(update: Members) -> str:
    status = short(update.get("status"))
    title = short(update.get("title")) or short(update.get("toolCallId"))
    paths = [short(members(location).get("path")) for location in items(update.get("locations"))[:3]]
    more = [path for path in paths if path and path.rsplit("/", 1)[-1] not in title]
    parts = [short(update.get("kind")), title, *more, f"→ {status}" if status else ""]
    return " ".join(part for part in parts if part)


def _plan(update: Members) -> str:
    entries = [
        members(entry) for entry in items(update.get("entries")) or items(members(update.get("plan")).get("entries"))
    ]
    done = sum(entry.get("status") == "completed" for entry in entries)
    current = next((short(entry.get("content")) for entry in entries if entry.get("status") == "in_progress"), "")
    return f"{done} of {len(entries)} steps{': ' if current else ''}{current}"


def _names(value: Any, name: str = "name") -> str:
    found = [short(members(item).get(name)) for item in items(value)[:30]]
    return ", ".join(word for word in found if word)


def _chosen(option: Members) -> str:
    return f"{short(option.get('id') or option.get('configId'))} = {short(option.get('currentValue'))}"


def _usage(update: Members) -> str:
    used, size = update.get("used"), update.get("size")
    cost = members(update.get("cost"))
    return " ".join(
        [f"{used} of {size} tokens", *([f"{cost.get('amount')} {short(cost.get('currency'))}"] if cost else [])]
    )


def _state(update: Members) -> str:
    return " ".join(part for part in (short(update.get("state")), short(update.get("stopReason"))) if part)


def _content(update: Members) -> str:
    content = update.get("content")
    return text_of(content if isinstance(content, list) else [content])


_UPDATES: dict[str, Callable[[Members], str]] = {
    "user_message_chunk": _content,
    "agent_message_chunk": _content,
    "agent_thought_chunk": _content,
    "user_message": _content,
    "agent_message": _content,
    "agent_thought": _content,
    "tool_call": _tool,
    "tool_call_update": _tool,
    "plan": _plan,
    "plan_update": _plan,
    "available_commands_update": lambda update: _names(update.get("availableCommands")),
    "current_mode_update": lambda update: short(update.get("currentModeId")),
    "config_option_update": lambda update: ", ".join(
        _chosen(members(it)) for it in items(update.get("configOptions"))[:10]
    ),
    "session_info_update": lambda update: short(update.get("title")),
    "usage_update": _usage,
    "state_update": _state,
    "terminal_update": lambda update: short(update.get("command")) or short(update.get("terminalId")),
    "terminal_output_chunk": lambda update: short(update.get("terminalId")),
}


def _client_info(params: Members) -> str:
    info = members(params.get("clientInfo")) or members(params.get("info"))
    return (
        f"version {short(params.get('protocolVersion'))} {short(info.get('name'))} {short(info.get('version'))}".strip()
    )


def _permission(params: Members) -> str:
    call = members(params.get("toolCall"))
    return f"{short(call.get('title')) or short(call.get('toolCallId'))}: {_names(params.get('options'))}"


def _command(params: Members) -> str:
    return short(" ".join([short(params.get("command")), *(short(word) for word in items(params.get("args"))[:20])]))


def _terminal(params: Members) -> str:
    return short(params.get("terminalId"))


def _path(params: Members) -> str:
    return short(params.get("path"))


def _cwd(params: Members) -> str:
    servers = _names(params.get("mcpServers"))
    return short(params.get("cwd")) + (f", MCP: {servers}" if servers else "")


_REQUESTS: dict[str, Callable[[Members], str]] = {
    "initialize": _client_info,
    "authenticate": lambda params: short(params.get("methodId")),
    "session/new": _cwd,
    "session/load": _cwd,
    "session/resume": _cwd,
    "session/fork": _cwd,
    "session/prompt": lambda params: text_of(params.get("prompt")),
    "session/set_mode": lambda params: short(params.get("modeId")),
    "session/set_model": lambda params: short(params.get("modelId")),
    "session/set_config_option": lambda params: f"{short(params.get('configId'))} = {short(params.get('value'))}",
    "session/request_permission": _permission,
    "fs/read_text_file": _path,
    "fs/write_text_file": _path,
    "terminal/create": _command,
    "terminal/output": _terminal,
    "terminal/wait_for_exit": _terminal,
    "terminal/kill": _terminal,
    "terminal/release": _terminal,
    "elicitation/create": lambda params: short(params.get("message")),
    "$/cancel_request": lambda params: f"request {short(params.get('requestId'))}",
}


def _agent_info(result: Members) -> str:
    info = members(result.get("agentInfo")) or members(result.get("info"))
    return (
        f"version {short(result.get('protocolVersion'))} {short(info.get('name'))} {short(info.get('version'))}".strip()
    )


def _outcome(result: Members) -> str:
    outcome = members(result.get("outcome"))
    return " ".join(part for part in (short(outcome.get("outcome")), short(outcome.get("optionId"))) if part)


def _exit(result: Members) -> str:
    status = members(result.get("exitStatus")) or result
    code, signal = status.get("exitCode"), status.get("signal")
    return f"exit code {code}" if code is not None else f"signal {short(signal)}" if signal else "running"


_ANSWERS: dict[str, Callable[[Members], str]] = {
    "initialize": _agent_info,
    "session/new": lambda result: short(result.get("sessionId")),
    "session/fork": lambda result: short(result.get("sessionId")),
    "session/list": lambda result: f"{len(items(result.get('sessions')))} sessions",
    "session/prompt": lambda result: short(result.get("stopReason")),
    "session/request_permission": _outcome,
    "elicitation/create": lambda result: short(result.get("action")),
    "fs/read_text_file": lambda result: f"{len(str(result.get('content', ''))):,} characters",
    "terminal/create": lambda result: short(result.get("terminalId")),
    "terminal/output": _exit,
    "terminal/wait_for_exit": _exit,
}
