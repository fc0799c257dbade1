"""What comes in version 2 in the words of version 1: updates, and the answer to `initialize`. PURE."""

from __future__ import annotations

from typing import Any, cast

from msgspec import UNSET

from accord.errors import ConversionError
from accord.schema import v1, v2
from accord.schema.base import Unknown
from accord.schema.conversion import all_to_v1
from accord.session import Message, SessionState, Speaker

# Updates of version 2 in the words of version 1, for those who read them one by one. PURE.
#
# A program that reads `v1.AgentMessageChunk` and `v1.ToolCall` need not know which version its agent speaks.
#
# | version 2 | a reader gets |
# |---|---|
# | a chunk of a message | the same chunk of version 1 |
# | a whole message that is new | a chunk for each of its blocks |
# | a whole message that continues what was there | a chunk with the rest |
# | a whole message that replaces what was there | the `v2` update itself: what was read no longer holds |
# | a tool call | `v1.ToolCall` at first, then `v1.ToolCallProgress`, with the values that the call has now |
# | plans, commands, options, usage, title, notices | the same of version 1 |
# | states, terminals, single pieces of a tool call's content, unknown updates | the `v2` update itself |


CHUNKS: dict[type, tuple[Speaker, Any]] = {
    v2.AgentMessageChunk: ("agent", v1.AgentMessageChunk),
    v2.AgentThoughtChunk: ("thought", v1.AgentThoughtChunk),
    v2.UserMessageChunk: ("user", v1.UserMessageChunk),
}
WHOLE: dict[type, tuple[Speaker, Any]] = {
    v2.AgentMessage: ("agent", v1.AgentMessageChunk),
    v2.AgentThought: ("thought", v1.AgentThoughtChunk),
    v2.UserMessage: ("user", v1.UserMessageChunk),
}
REMEMBERED = 10_000
"""Messages and tool calls that are known as begun; of an older one, a whole message counts as new."""


class UpdateView:
    """The updates of one session, as readers see them."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], None] = {}
        """The messages and tool calls that have begun, by kind and id."""
        self.last: tuple[str, str] | None = None
        """What was noted last, which the next chunk most likely continues."""
        self._grown: set[str] = set()
        """Tool calls whose content has grown piece by piece since it was last shown as a whole."""

    def clear(self) -> None:
        """Forget everything, before a replay from the start."""
        self._begun.clear()
        self.last = None
        self._grown.clear()

    def read(
        self, update: v2.SessionUpdate, state: SessionState, replaced: tuple[Message, Message] | None
    ) -> list[Any]:
        """What readers get for this update, which `state` has folded already.

        `replaced` is a message before and after, if the update has replaced what it said.
        """
        kind = update.__class__
        if (chunk := CHUNKS.get(kind)) is not None:
            return self._chunk(cast("v2.ContentChunk", update), *chunk)
        if (whole := WHOLE.get(kind)) is not None:
            return self._whole(update, *whole, replaced)
        match update:
            case v2.ToolCallProgress():
                return self.tool_call(update, state)
            case v2.ToolCallContentChunk():
                self._grown.add(update.tool_call_id)
                return [update]
            case v2.ConfigOptionUpdate():
                return [v1.ConfigOptionUpdate([*state.config, *state.unknown_config], meta=update.meta)]
            case v2.AvailableCommandsUpdate():
                commands = [it for it in state.commands if isinstance(it, v1.AvailableCommand)]
                return [v1.AvailableCommandsUpdate(commands, meta=update.meta)]
            case v2.SessionStateUpdate() | v2.TerminalUpdate() | v2.TerminalOutputChunk() | Unknown():
                return [update]
            case _:
                return as_v1(update)

    # Messages

    def _chunk(self, update: v2.ContentChunk, speaker: Speaker, kind: Any) -> list[Any]:
        self.begin(speaker, update.message_id)
        return [kind(update.content, update.message_id, meta=update.meta)]

    def _whole(self, update: Any, speaker: Speaker, kind: Any, replaced: tuple[Message, Message] | None) -> list[Any]:
        if update.content is UNSET:
            return [update]
        is_new = self.begin(speaker, update.message_id)
        if not update.content:  # what comes next is all that it says
            del self._begun[speaker, update.message_id]
            self.last = None
            return [update]
        if is_new:
            return _chunks(update, kind)
        if replaced is None:  # it says what it said
            return []
        before, after = replaced
        rest = _rest(before, after)
        if rest is None:
            return [update]
        return [kind(v1.TextContent(rest), update.message_id)] if rest else []

    def begin(self, kind: str, its_id: str) -> bool:
        """Note that something has begun; returns whether it is new."""
        self.last = key = (kind, its_id)
        if key in self._begun:
            return False
        self._begun[key] = None
        if len(self._begun) > REMEMBERED:
            del self._begun[next(iter(self._begun))]
        return True

    # Tool calls

    def tool_call(self, update: v2.ToolCallProgress, state: SessionState) -> list[Any]:
        """What readers get for a change of a tool call, which `state` has folded already."""
        call_id = update.tool_call_id
        call = state.tool_calls.get(call_id)
        if call is None:  # dropped at once, because it is larger than the state may be
            return as_v1(update)
        is_new = self.begin("tool call", call_id)
        shows_content = is_new or update.content is not UNSET or (call_id in self._grown and call.is_finished)
        if shows_content:
            self._grown.discard(call_id)
        status: Any = call.status  # of version 2, with its words
        content: Any = list(call.content) if shows_content else None
        meta = update.meta or None
        if is_new:
            return [
                v1.ToolCall(
                    call_id,
                    call.title,
                    kind=call.kind,
                    status=status,
                    content=content,
                    locations=list(call.locations),
                    raw_input=call.raw_input,
                    raw_output=call.raw_output,
                    name=call.name,
                    meta=meta,
                )
            ]
        return [
            v1.ToolCallProgress(
                call_id,
                title=None if update.title is UNSET else call.title,
                kind=None if update.kind is UNSET else call.kind,
                status=None if update.status is UNSET else status,
                content=content,
                locations=None if update.locations is UNSET else list(call.locations),
                raw_input=None if update.raw_input is UNSET else call.raw_input,
                raw_output=None if update.raw_output is UNSET else call.raw_output,
                name=None if update.name is UNSET else call.name,
                meta=meta,
            )
        ]


def as_v1(update: Any) -> list[Any]:
    """This update in the words of version 1; the update itself if version 1 has no words for it."""
    try:
        return all_to_v1(update)
    except ConversionError:
        return [update]


def _chunks(update: Any, kind: Any) -> list[Any]:
    """A whole message as one chunk for each block."""
    return [kind(block, update.message_id) for block in update.content]


def _rest(before: Message, after: Message) -> str | None:
    """The text that a message has gained; None if it does not begin with what it said before."""
    if any(not isinstance(block, v1.TextContent) for block in (*before.content, *after.content)):
        return None
    return after.text[len(before.text) :] if after.text.startswith(before.text) else None


# The answer to `initialize` of version 2, in the words of version 1. PURE.
#
# What needs a capability asks for it by the place that it has in version 1, in both versions. So what an agent of
# version 2 declares is read into that shape, and nothing is refused: a capability without a counterpart is left out
# here, and stays readable in `RemoteAgent.capabilities.declared`.
#
# | version 2 | version 1 |
# |---|---|
# | `session` | load, list, resume and close |
# | `session.prompt`, `session.mcp`: objects | booleans |
# | any `authMethods` | `auth.logout` |
# | `methodId` | `id` |


def answer_as_v1(answer: v2.InitializeResponse) -> v1.InitializeResponse:
    """The answer of an agent of version 2 as one of version 1; `protocol_version` stays 2."""
    return v1.InitializeResponse(
        answer.protocol_version,
        capabilities_as_v1(answer),
        [_login(method) for method in answer.auth_methods],
        answer.info,
        meta=answer.meta,
    )


def capabilities_as_v1(answer: v2.InitializeResponse) -> v1.AgentCapabilities:
    """The capabilities in an answer of version 2, as those of version 1."""
    told = answer.capabilities
    sessions = told.session
    logout = v1.LogoutCapabilities() if answer.auth_methods else None
    auth = v1.AgentAuthCapabilities(logout=logout, status=None if told.auth is None else told.auth.status)
    if sessions is None:
        return v1.AgentCapabilities(auth=auth, providers=told.providers, meta=told.meta)
    return v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=_prompt(sessions.prompt or v2.PromptCapabilities()),
        mcp_capabilities=_mcp(sessions.mcp or v2.McpCapabilities()),
        session_capabilities=_sessions(sessions),
        auth=auth,
        providers=told.providers,
        meta=told.meta,
    )


def _prompt(told: v2.PromptCapabilities) -> v1.PromptCapabilities:
    return v1.PromptCapabilities(
        image=told.image is not None,
        audio=told.audio is not None,
        embedded_context=told.embedded_context is not None,
    )


def _mcp(told: v2.McpCapabilities) -> v1.McpCapabilities:
    return v1.McpCapabilities(http=told.http is not None, acp=told.acp is not None)


def _sessions(told: v2.SessionCapabilities) -> v1.SessionCapabilities:
    return v1.SessionCapabilities(
        list=v1.SessionListCapabilities(),
        delete=told.delete,
        additional_directories=told.additional_directories,
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
        fork=told.fork,
        archive=told.archive,
        status=told.status,
        title=told.title,
        options=told.options,
        system_prompt=told.system_prompt,
    )


def _login(method: v2.AuthMethod) -> Any:
    match method:
        case v2.AuthMethodAgent():
            return v1.AuthMethodAgent(method.method_id, method.name, method.description, meta=method.meta)
        case v2.AuthMethodTerminal():
            # Of several values of one variable, the last one counts, as in a shell.
            env = {variable.name: variable.value for variable in method.env}
            return v1.AuthMethodTerminal(
                method.method_id, method.name, method.description, method.args, env, meta=method.meta
            )
        case Unknown():
            return method
