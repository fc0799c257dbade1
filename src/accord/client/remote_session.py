"""`RemoteSession`: one conversation with an agent, as the client holds it.

    prompt ──▶ Reply, appended to the turns        the agent works on the first one that it has not answered
    update ──▶ folded into `state` ──▶ that Reply, or outside of any turn `updates()`

It outlives its connection: when a dead agent is started anew and takes the session up again, it is the same object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Raw

from accord.client import mentions
from accord.client.markdown import markdown
from accord.client.reply import Outcome, Reply
from accord.client.unread import Unread
from accord.errors import ConnectionClosed, Overflow
from accord.schema import codec, v1
from accord.schema.base import Unknown
from accord.services.roots import Roots
from accord.state import SessionState, ToolCallState, choices_of

if TYPE_CHECKING:
    from accord.client.remote_agent import RemoteAgent

Content: TypeAlias = "str | Path | v1.ContentBlock"
"""What a prompt may be made of: text, files, and any block of the protocol."""

_SWITCH: Sequence[str | bool] = (True, False)

KEPT_OUTSIDE = 1_000
"""Updates outside of a turn that are kept for the first who asks for them."""


class RemoteSession:
    """A session of an agent.

    session = await remote.new_session("/home/me/project")
    outcome = await session.prompt("Summarise the README")
    print(session.state.title, outcome.text)
    """

    def __init__(
        self,
        remote: RemoteAgent,
        session_id: v1.SessionId,
        cwd: Path,
        additional_directories: Sequence[str] = (),
        mcp_servers: Sequence[v1.McpServer] = (),
    ) -> None:
        self.remote = remote
        self.id = session_id
        self.cwd = cwd
        self.additional_directories = list(additional_directories)
        self.mcp_servers = list(mcp_servers)
        self.roots = Roots([cwd, *additional_directories])
        self.state = SessionState(remote.limits.state)
        """What its updates amount to so far."""
        self.is_open = True
        self._turns: deque[Reply] = deque()
        self._outside: deque[tuple[v1.SessionUpdate, int]] = deque()
        self._outside_size = 0
        self._listeners: list[Unread] = []

    @property
    def agent(self) -> str:
        """Whose session it is, by a name that is the same next time."""
        return self.remote.name

    @property
    def program(self) -> str:
        """What its agent is, however that calls itself."""
        return self.remote.target.program

    def __repr__(self) -> str:
        return f"RemoteSession({self.id!r}, cwd={str(self.cwd)!r})"

    # Turns

    def prompt(
        self,
        *content: Content,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        mentions: bool = False,
        wire: bool = False,
    ) -> Reply:
        """Send a prompt now; what comes back is a `Reply`, to be iterated, awaited or left alone.

        A `Path` goes along as what the agent takes of it: an image, its contents, or a link; with `mentions`, so do the
        files of the session's folders that a text names as `@path`. A block that the agent did not say it takes raises
        `CapabilityMissing`. `timeout` is for the whole turn, `idle_timeout` for a time without a word from the agent;
        past one of them the turn is cancelled and the Reply fails with `Timeout`. With `wire`, `reply.wire()` gives the
        updates' JSON as it came.
        """
        blocks = self._blocks(content, with_mentions=mentions)
        peer = self.remote.peer
        reply = Reply(self, Unread(peer.connection.intake, self.remote.limits.reply), wire=wire)
        prompted = peer.post(v1.PromptRequest(self.id, blocks))
        reply.sent(prompted, blocks)
        self._turns.append(reply)
        if len(self._turns) == 1:
            self._begin(reply)
        prompted.then(lambda result: self._answered(reply, result))
        if timeout is not None or idle_timeout is not None:
            self.remote.tasks.start(reply.watch(timeout, idle_timeout), f"deadlines of {self.id}")
        return reply

    def _blocks(self, content: Iterable[Content], *, with_mentions: bool) -> list[v1.ContentBlock]:
        takes = self.remote.capabilities.prompt
        blocks: list[v1.ContentBlock] = []
        for part in content:
            if isinstance(part, Path):
                blocks.append(mentions.block_for(self.cwd / part, takes))
            elif isinstance(part, str):
                blocks.append(v1.TextContent(part))
                if with_mentions:
                    blocks += [
                        mentions.block_for(path, takes) for path in mentions.files_in(part, self.cwd, self.roots)
                    ]
            else:
                # initialization, Prompt capabilities: whoever cannot read it would refuse the prompt.
                self.remote.peer.capabilities.require_for(part, f"{part.__class__.__name__} in a prompt")
                blocks.append(part)
        return blocks

    def _begin(self, reply: Reply) -> None:
        self.state.add_prompt(reply.prompt)
        reply.begin()

    def _answered(self, reply: Reply, result: v1.PromptResponse | Exception) -> None:
        was_first = self._turns[0] is reply
        if was_first:
            self.state.end_turn(refused=isinstance(result, v1.PromptResponse) and result.stop_reason == "refusal")
        reply.answered(result)
        self._turns.remove(reply)
        if was_first and self._turns:
            self._begin(self._turns[0])
        if isinstance(result, Exception):
            self.remote.failed(self.id, result)

    def is_turn(self, reply: Reply) -> bool:
        """Whether the agent still owes the answer to its prompt."""
        return reply in self._turns

    @property
    def is_busy(self) -> bool:
        """Whether the agent works on a prompt."""
        return bool(self._turns)

    async def cancel(self) -> Outcome | None:
        """Cancel the turn that runs, and wait for its end; None if none does."""
        return await self._turns[0].cancel() if self._turns else None

    def send_cancel(self) -> None:
        """Tell the agent to stop, and everybody here who waits for the user's answer in this session."""
        if self.remote.peer.connection.is_open:
            self.remote.peer.tell(v1.CancelNotification(self.id))
        for service in self.remote.client.services:
            service.turn_cancelled(self)
        self.state.cancel_unfinished()

    # Updates

    def received(self, update: v1.SessionUpdate, params: bytes | Raw) -> None:
        """An update of this session."""
        size = len(memoryview(params))
        self.state.add(update, size)
        if self._turns:
            reply = self._turns[0]
            try:
                reply.unread.put(wire_form(params) if reply.keeps_wire else update, size)
            except Overflow as overflow:
                reply.overflowed(overflow)
        elif self._listeners:
            self._tell_listeners(update, size)
        else:
            self._keep_outside(update, size)

    def _keep_outside(self, update: v1.SessionUpdate, size: int) -> None:
        self._outside.append((update, size))
        self._outside_size += size
        while len(self._outside) > KEPT_OUTSIDE or self._outside_size > self.remote.limits.early:
            self._outside_size -= self._outside.popleft()[1]

    def _tell_listeners(self, update: v1.SessionUpdate, size: int) -> None:
        for listener in list(self._listeners):
            try:
                listener.put(update, size)
            except Overflow:
                self._listeners.remove(listener)  # it learns from its own queue

    async def updates(self) -> AsyncIterator[v1.SessionUpdate]:
        """The updates that come outside of a turn, until the session is closed or its connection ends.

        The first who asks gets those that came before as well, as far as they were kept.
        """
        listener = Unread(None, self.remote.limits.reply)
        while self._outside:
            listener.put(*self._outside.popleft())
        self._outside_size = 0
        if not self.is_open:
            listener.finish()
        self._listeners.append(listener)
        try:
            while (update := await listener.get()) is not None:
                yield update
        finally:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def on_change(self, observer: Callable[[Any], None]) -> Callable[[], None]:
        """Call this after every change of `state`; what is returned ends it."""
        return self.state.on_change(observer)

    # What its agent can be asked

    async def set_mode(self, mode: str) -> None:
        """Change how the agent works, to one of `state.modes`; ValueError for another.

        Where the agent has a config option for it, that is set; older agents have modes alone.
        """
        if mode not in (offered := [it.id for it in self.state.modes]):
            raise ValueError(f"the agent has no mode {mode!r}; it has {', '.join(offered) or 'none'}")
        if (option := self.state.mode_option) is not None:
            await self.set_config(option.id, mode)
            return
        mode_id = v1.SessionModeId(mode)
        await self.remote.request(v1.SetSessionModeRequest(self.id, mode_id))
        self.state.set_mode(mode_id)

    async def set_config(self, option: str, value: str | bool) -> None:
        """Choose a config option's value; all of them as they are then are in `state.config`.

        ValueError for an option or a value that the agent does not offer.
        """
        offered = self.state.option(option)
        if offered is None:
            known = [it.id for it in self.state.config if not isinstance(it, Unknown)]
            raise ValueError(f"the agent has no config option {option!r}; it has {', '.join(known) or 'none'}")
        values = [it.value for it in choices_of(offered)] if isinstance(offered, v1.SessionConfigSelect) else _SWITCH
        if not any(value.__class__ is it.__class__ and value == it for it in values):
            shown = [str(it).lower() if isinstance(it, bool) else it for it in values]
            raise ValueError(f"{option!r} has no value {value!r}; it has {', '.join(shown)}")
        chosen = value if isinstance(value, bool) else v1.SessionConfigValueId(value)
        request = v1.SetSessionConfigOptionRequest.of(self.id, v1.SessionConfigId(option), chosen)
        self.state.set_config((await self.remote.request(request)).config_options)

    async def set_title(self, title: str) -> None:
        """Name the session."""
        self.state.title = (await self.remote.request(v1.SetSessionTitleRequest(self.id, title))).title

    async def fork(self) -> RemoteSession:
        """A copy of this session under its own id."""
        return await self.remote.fork(self)

    async def close(self) -> None:
        """Stop what the session does and free what it holds, where the agent can; it takes nothing more here."""
        await self.remote.close_session(self)

    def markdown(self) -> str:
        """The conversation as Markdown."""
        return markdown(self.state)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """What a permission request says of a tool call becomes part of it."""
        known = self.state.tool_calls.get(said.tool_call_id) or ToolCallState(said.tool_call_id)
        self.state.add(said)
        return known.updated(said)

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """A tool call of this session by its id, as it stands."""
        return self.state.tool_calls.get(tool_call_id)

    # Life

    def to_load(self) -> v1.LoadSessionRequest:
        return v1.LoadSessionRequest(self.id, str(self.cwd), self.mcp_servers, self.additional_directories)

    def to_resume(self) -> v1.ResumeSessionRequest:
        return v1.ResumeSessionRequest(self.id, str(self.cwd), self.additional_directories, self.mcp_servers)

    def opened(
        self,
        response: v1.NewSessionResponse | v1.LoadSessionResponse | v1.ResumeSessionResponse | v1.ForkSessionResponse,
    ) -> None:
        """What the agent said of it when it was opened."""
        self.state.set_modes(response.modes)
        self.state.set_config(response.config_options)
        self.is_open = True

    async def ended(self) -> None:
        """It, or its connection for good, has ended."""
        self.is_open = False
        for reply in list(self._turns):
            reply.answered(ConnectionClosed("closed", "the session was closed"))
        for listener in list(self._listeners):
            listener.finish()
        for service in self.remote.client.services:
            await service.release(self)


class _OnlyUpdate(msgspec.Struct):
    update: Raw


_only_update = msgspec.json.Decoder(_OnlyUpdate)


def wire_form(params: bytes | Raw) -> bytes:
    """The update in these params, byte for byte where msgspec can find its end."""
    try:
        return bytes(_only_update.decode(params).update)
    except codec.REFUSALS:
        # Half an emoji, or bytes that are no UTF-8: written anew, it says the same.
        return codec.encode(codec.loads(params)["update"])
