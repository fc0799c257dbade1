"""Updates, and the answer to `initialize`, of version 2 in types of version 1. PURE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from msgspec import UNSET

from accord.schema import v1, v2
from accord.schema.base import Unknown
from accord.session import Message, Observer, SessionState, Speaker

CapabilitiesT = TypeVar("CapabilitiesT", v1.PromptCapabilities, v1.McpCapabilities)

# Whole messages of version 2, for those who read updates one by one: they get chunks, as in version 1. PURE.
#
# | version 2 | a reader gets |
# |---|---|
# | a whole message that is new | a chunk for each of its blocks |
# | a whole message that continues what was there | a chunk with the rest |
# | a whole message that replaces what was there | the `v2` update itself: what was read no longer holds |
# | everything else | the update itself |


CHUNKS: dict[type, Speaker] = {
    v2.AgentMessageChunk: "agent",
    v2.AgentThoughtChunk: "thought",
    v2.UserMessageChunk: "user",
}
WHOLE: dict[type, tuple[Speaker, Any]] = {
    v2.AgentMessage: ("agent", v1.AgentMessageChunk),
    v2.AgentThought: ("thought", v1.AgentThoughtChunk),
    v2.UserMessage: ("user", v1.UserMessageChunk),
}
REMEMBERED = 10_000
"""Messages that are known to have begun; a whole message for an older one counts as new."""


class UpdateView:
    """The updates of one session, as readers and observers of its state see them."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._begun: dict[tuple[str, str], None] = {}
        """The messages that have begun, by speaker and id."""
        self.last: tuple[str, str] | None = None
        """The message that was noted last, which the next chunk most likely continues."""
        self.observers: list[Observer] = []
        self._stop_watching: Callable[[], None] | None = None
        self._is_folding = False
        self._replaced: tuple[Message, Message] | None = None
        """The message that the present update has replaced, before and after."""
        state.on_replacement(self._was_replaced)

    def fold(self, update: Any, size: int) -> list[Any]:
        """Fold an update into the state, and return its form for readers."""
        self._replaced = None
        self._is_folding = True
        try:
            self._state.add(update, size)
        finally:
            self._is_folding = False
        shown = self._read(update, self._replaced)
        if self.observers:
            for each in shown or [None]:
                self._tell_observers(each)
        return shown

    def _was_replaced(self, before: Message, after: Message) -> None:
        self._replaced = before, after

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every change of the state, with the update as readers get it; call the result to stop
        it.
        """
        self.observers.append(observer)
        if self._stop_watching is None:
            self._stop_watching = self._state.on_change(self._state_changed)

        def end() -> None:
            if observer in self.observers:
                self.observers.remove(observer)
            if not self.observers and self._stop_watching is not None:
                self._stop_watching()
                self._stop_watching = None

        return end

    def _state_changed(self, _: object) -> None:
        if not self._is_folding:
            self._tell_observers(None)

    def _tell_observers(self, update: Any) -> None:
        for observer in list(self.observers):
            observer(update)

    def clear(self) -> None:
        """Forget everything, before a replay from the start."""
        self._begun.clear()
        self.last = None

    def _read(self, update: v2.SessionUpdate, replaced: tuple[Message, Message] | None) -> list[Any]:
        """Return the form for readers of this update, which the session's state has folded already.

        `replaced` is a message before and after, if the update has replaced its content.
        """
        kind = update.__class__
        if (speaker := CHUNKS.get(kind)) is not None:
            self.begin(speaker, cast("v2.ContentChunk", update).message_id)
            return [update]
        if (whole := WHOLE.get(kind)) is not None:
            return self._whole(update, *whole, replaced)
        return [update]

    # Messages

    def _whole(self, update: Any, speaker: Speaker, kind: Any, replaced: tuple[Message, Message] | None) -> list[Any]:
        if update.content is UNSET:
            return [update]
        is_new = self.begin(speaker, update.message_id)
        if not update.content:  # the next chunk is its whole text
            del self._begun[speaker, update.message_id]
            self.last = None
            return [update]
        if is_new:
            return _chunks(update, kind)
        if replaced is None:  # its text is unchanged
            return []
        before, after = replaced
        rest = _rest(before, after)
        if rest is None:
            return [update]
        return [kind(v1.TextContent(rest), update.message_id, meta=update.meta or None)] if rest else []

    def begin(self, kind: str, its_id: str) -> bool:
        """Note that a message has begun; returns whether it is new."""
        self.last = key = (kind, its_id)
        if key in self._begun:
            return False
        self._begun[key] = None
        if len(self._begun) > REMEMBERED:
            del self._begun[next(iter(self._begun))]
        return True


def _chunks(update: Any, kind: Any) -> list[Any]:
    """A whole message as one chunk for each block."""
    return [kind(block, update.message_id, meta=update.meta or None) for block in update.content]


def _rest(before: Message, after: Message) -> str | None:
    """Return the text that was appended to a message; None if its old text is not a prefix of the new."""
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
    """Return the capabilities in an answer of version 2, as those of version 1."""
    declared = answer.capabilities
    sessions = declared.session
    logout = v1.LogoutCapabilities() if answer.auth_methods else None
    auth = v1.AgentAuthCapabilities(logout=logout, status=None if declared.auth is None else declared.auth.status)
    if sessions is None:
        return v1.AgentCapabilities(auth=auth, providers=declared.providers, meta=declared.meta)
    return v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=_offered(sessions.prompt, v1.PromptCapabilities),
        mcp_capabilities=_offered(sessions.mcp, v1.McpCapabilities),
        session_capabilities=_sessions(sessions),
        auth=auth,
        providers=declared.providers,
        meta=declared.meta,
    )


def _offered(declared: Any, capabilities: type[CapabilitiesT]) -> CapabilitiesT:
    """Return whether a capability is present that is an object in version 2 and a boolean in version 1."""
    offers: Any = {name: getattr(declared, name, None) is not None for name in capabilities.__struct_fields__}
    return capabilities(**offers | {"meta": None})


def _sessions(declared: v2.SessionCapabilities) -> v1.SessionCapabilities:
    names = {*v1.SessionCapabilities.__struct_fields__} & {*declared.__struct_fields__} - {"meta"}
    return v1.SessionCapabilities(
        list=v1.SessionListCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
        **{name: getattr(declared, name) for name in names},
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
