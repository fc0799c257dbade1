"""`Session`: one conversation, while it is open on a connection, from the answer that opens it to its close.

Its public members are the author's. The `_private` ones are for this folder: connections, turns and subagents use them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET

from accord._internal.endpoint import Endpoint
from accord.agent.agent_capabilities import text_of
from accord.agent.model_providers import endpoint_of
from accord.agent.plan import SessionPlans
from accord.agent.record import Record, SessionUpdates, public_error, title_of
from accord.agent.remote_client import RemoteClient, SessionClient
from accord.agent.session_activity import Cancellations, PromptQueue, SessionActivity
from accord.agent.session_config import Commands, Config, Models, Modes, called_by, offered
from accord.agent.user_questions import PermissionMemory
from accord.engine.handlers import MessageT, Registration
from accord.errors import ConnectionClosed, RequestError, StoreError
from accord.mistakes import check_text, check_word, wrong_type
from accord.project.confined import Roots
from accord.schema import v1
from accord.schema.base import Json, JsonObject
from accord.schema.capabilities import CURSORS
from accord.schema.sendable import check_meta, check_sendable, check_update, content_block, with_meta
from accord.session import SessionState, ToolCallState, updates
from accord.session.updates import SessionId

if TYPE_CHECKING:
    from accord.agent.agent_connection import AgentConnection
    from accord.agent.model_messages import Api
    from accord.agent.session_mcp import SessionServers
    from accord.schema.extension import ExtensionT


Mode: TypeAlias = Literal["append", "override"]


class ClientSystemPrompt(msgspec.Struct, frozen=True):
    """Text of the client that extends the agent's own system prompt, or replaces it.

    >>> ClientSystemPrompt("append", "Be brief.").applied_to("You are a librarian.")
    'You are a librarian.\\n\\nBe brief.'
    >>> ClientSystemPrompt("override", "You are a poet.").applied_to("You are a librarian.")
    'You are a poet.'
    """

    mode: Mode
    """How it combines with the agent's own: `append` adds to it, `override` replaces it."""
    text: str
    """The text of the client's system prompt."""

    def applied_to(self, own: str) -> str:
        """Return the system prompt of the session, made of the agent's own and this one."""
        return self.text if self.mode == "override" or not own else f"{own}\n\n{self.text}"


def system_prompt_of(given: Any, accepted: Collection[Mode]) -> ClientSystemPrompt | None:
    """Return the system prompt in a request that opens a session; raises RequestError for one that the agent cannot
    use.
    """
    if given is None:
        return None
    # system prompts, Errors: one that the agent cannot use is refused, never ignored.
    if given.mode not in accepted:
        how = ", ".join(accepted) or "none"
        raise RequestError.invalid_params(
            f"this agent takes no system prompt of mode {given.mode[:60]!r}; it takes {how}", path="$.systemPrompt.mode"
        )
    texts = [getattr(block, "text", None) for block in given.content]
    if not all(isinstance(text, str) for text in texts) or not any(texts):
        raise RequestError.invalid_params("a system prompt must be text, and not empty", path="$.systemPrompt.content")
    return ClientSystemPrompt(cast("Mode", given.mode), "\n\n".join(cast("list[str]", texts)))


def check_modes(modes: Collection[str]) -> tuple[Mode, ...]:
    """Return the modes of `Agent(system_prompts=...)`; raises ValueError for an invalid one."""
    given = set(modes)
    if given - {"append", "override"} or given == {"override"}:
        raise ValueError(
            "Agent(system_prompts=...) must be empty, ['append'] or ['append', 'override']: "
            f"an agent that lets its system prompt be replaced must let it be extended; got {sorted(given)}"
        )
    return tuple(mode for mode in ("append", "override") if mode in given)


T = TypeVar("T")

log = logging.getLogger("accord")


class SessionTasks:
    """The tasks of one session that no turn waits for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run this until it is done or the session is closed."""
        task = asyncio.get_running_loop().create_task(work, name=self._name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ConnectionClosed):
            log.info("background work of %s ended with its connection: %s", self._name, error)
        elif error is not None:
            log.error("background work of %s failed", self._name, exc_info=error)

    async def end(self, grace: float) -> None:
        """Cancel all tasks, and wait for them during the grace period."""
        current = asyncio.current_task()
        left = {task for task in self._tasks if task is not current}
        for task in left:
            task.cancel()
        if left:
            _, stuck = await asyncio.wait(left, timeout=grace)
            if stuck:
                log.warning("%d background tasks of %s did not end when they were cancelled", len(stuck), self._name)


# A compaction: only a completed one has a summary, so one that fails or is cancelled takes back what it has shown.


class RunningCompaction:
    """A compaction of the agent's context, from its beginning to its end; `session.compaction()` makes it."""

    def __init__(self, sender: SessionUpdates, compaction_id: updates.CompactionId, meta: JsonObject | None) -> None:
        self.id: updates.CompactionId = compaction_id
        """The compaction's id, which the client knows as well."""
        self.is_shown: bool = sender.client_shows("session.compaction")
        """Whether the client shows compactions; otherwise nothing is sent."""
        self.status: updates.CompactionStatus = "in_progress"
        """Its status: `in_progress`, `completed`, `failed` or `cancelled`."""
        self._updates = sender
        self._meta = meta
        self._has_summary = False

    def __repr__(self) -> str:
        return f"RunningCompaction({self.id!r}, {self.status})"

    async def summary(self, content: str | v1.ContentBlock, *, meta: JsonObject | None = None) -> None:
        """Show the next part of the summary: text, in Markdown, or any other content."""
        block = content_block("compaction.summary()", content)
        if self.status != "in_progress":
            raise RuntimeError(f"this compaction is {self.status}; its summary is complete")
        self._has_summary = True
        await self._send(with_meta("compaction.summary", updates.CompactionSummaryChunk(self.id, block), meta))

    async def fail(self, reason: str, *, meta: JsonObject | None = None) -> None:
        """End it as failed, for this reason, which is shown to the user."""
        check_text("compaction.fail()", reason)
        await self._end("failed", reason, meta)

    async def __aenter__(self) -> Self:
        await self._send(with_meta("session.compaction", updates.CompactionUpdate(self.id, "in_progress"), self._meta))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.status != "in_progress":
            return
        if error is None:
            await self._end("completed")
            return
        with suppress(ConnectionClosed, StoreError):  # the error of the block is more informative
            if isinstance(error, asyncio.CancelledError):
                await self._end("cancelled")
            else:
                await self._end("failed", public_error(error).message)

    async def _end(
        self, status: updates.CompactionStatus, reason: str | None = None, meta: JsonObject | None = None
    ) -> None:
        self.status = status
        taken_back = None if self._has_summary and status != "completed" else UNSET
        update = updates.CompactionUpdate(self.id, status, taken_back, UNSET if reason is None else reason)
        await self._send(with_meta("compaction.fail", update, meta))

    async def _send(self, update: updates.CompactionUpdate | updates.CompactionSummaryChunk) -> None:
        if self.is_shown:
            await self._updates.send(update)


if TYPE_CHECKING:
    # Only type checkers need the default; `typing` has it from 3.13 on, and typing_extensions is no dependency.
    from typing_extensions import TypeVar as TypeVarWithDefault

    from accord.agent.session_mcp import SessionServers
    from accord.agent.skills import AgentSkill
    from accord.agent.turn import Turn

    StateT = TypeVarWithDefault("StateT", default=Any)
else:
    StateT = TypeVar("StateT")


class KeptPrompt(Protocol):
    """A prompt of version 2 that is being stored."""

    prompt: Sequence[updates.ContentBlock]
    key: str | None
    interrupted: str | None

    def kept(self, session: Session, message_id: str, echo: bytes | None) -> None:
        """Note that it is stored under this id; `echo` is the stored update, None if an earlier attempt stored it."""


class Session(Generic[StateT]):
    """One conversation: its id and folders, the options that it offers, and the updates that it sends to the client.

    Its type argument is the type of `state`: `Session[Notes]` for an `Agent(state=Notes)`.
    """

    def __init__(
        self,
        connection: AgentConnection,
        session_id: updates.SessionId,
        folders: Sequence[Path],
        record: Record,
        *,
        mcp_servers: Sequence[v1.McpServer] = (),
        meta: JsonObject | None = None,
        system_prompt: ClientSystemPrompt | None = None,
    ) -> None:
        self.id: v1.SessionId = session_id
        """The session's id, which the client knows as well."""
        self.cwd: Path = folders[0]
        """The folder that it works in, and the base of relative paths."""
        self.roots: Roots = Roots(folders)
        """Where its files and commands should stay: `cwd` and the additional directories."""
        self.mcp_servers: tuple[v1.McpServer, ...] = tuple(mcp_servers)
        """The MCP servers that the client gave to this session."""
        self.meta: JsonObject = meta or {}
        """The `_meta` of the request that opened it."""
        self.answer_meta: JsonObject = {}
        """The `_meta` of the answer that opens it: fill it in `@agent.on_session`."""
        self.system_prompt: ClientSystemPrompt | None = system_prompt
        """The client's addition to your system prompt, or its replacement; None if the request had none."""
        self.state: StateT = _state_of(connection.agent.state_type, record)
        """Any value that you want to keep for this session: while it is open, or with `Agent(state=...)` in the store.
        """
        agent, client = connection.agent, connection.client
        self._connection = connection
        self._record = record
        """Its stored data."""
        self._updates = updates = SessionUpdates(record, client.peer, self.cwd, client.dialect())
        self._activity = SessionActivity(updates)
        """The session's activity, as it is reported to the client."""
        self._cancels = Cancellations()
        """The parts of the work that the client may cancel one by one."""
        requester = client.requester_for(self, updates.dialect)
        self._link = SessionClient(client, requester, connection.errands, session_id, self.cwd)
        """The context of requests to the client, in turns and between them."""
        self._turns = PromptQueue(agent.prompt_while_working, agent.cancel_grace)
        self._tasks = SessionTasks(f"session {session_id}")
        """The tasks that run beside the turns."""
        self._plans = SessionPlans(updates.client_shows)
        """The session's plans."""
        self._subagents: dict[SessionId, Callable[[], None]] = {}
        """The subagents that the user may cancel, by their ids, and what cancels each."""
        self.client: RemoteClient = RemoteClient(self._link, requester)
        """The client, between turns; requests through `turn.client` end with their turn."""
        self.config: Config = Config(updates, partial(agent.config_changed, self))
        """The options that the user chooses from."""
        self.commands: Commands = Commands(updates, agent.commands)
        """The slash commands."""
        self.permissions: PermissionMemory = agent.permission_memory or PermissionMemory()
        """The remembered answers to permission questions."""
        self._resources: AsyncExitStack | None = None  # an empty one takes a KiB of each session
        self._mcp: SessionServers | None = None
        self._compactions = 0
        self._works = 0
        self._is_announced = False
        """Whether the commands that the session begins with were sent."""
        self._prompt_title: str | None = None
        """The title that the latest prompt gave."""
        self._submissions: dict[str, asyncio.Future[None] | None] = {}
        """The prompts that are not stored yet, by the keys under which they were sent."""
        if client.local is not None:
            self.resources.push_async_callback(client.local.release, self)

    # Properties, because an object of more than 30 attributes costs more memory, and more time for each of them.

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self._connection.agent.info.name

    @property
    def program(self) -> str:
        """The module of the agent's code, and the agent's name: remembered answers are stored under it."""
        return self._connection.agent.program

    @property
    def modes(self) -> Modes:
        """The ways of working that the user chooses from."""
        return Modes(self.config)

    @property
    def models(self) -> Models:
        """The models that the user chooses from."""
        return Models(self.config)

    @property
    def resources(self) -> AsyncExitStack:
        """Closed when the session is: `await session.resources.enter_async_context(...)`."""
        if self._resources is None:
            self._resources = AsyncExitStack()
        return self._resources

    @property
    def title(self) -> str | None:
        """The session's title in lists."""
        return self._record.title

    async def set_title(self, title: str | None) -> None:
        """Set the session's title, or remove it."""
        if title is not None:
            check_text("session.set_title()", title)
        await self.send(updates.SessionInfoUpdate(title=title))

    @property
    def info_meta(self) -> dict[str, Json] | None:
        """The `_meta` that the session has in lists."""
        return self._record.info

    async def set_info_meta(self, meta: JsonObject | None) -> None:
        """Set the session's `_meta` in lists, or remove it, and notify the client."""
        check_meta("session.set_info_meta()", meta)
        if meta is not None and self._record.version == 2:
            meta = {**dict.fromkeys(self.info_meta or {}), **meta}  # version 2 patches it by its keys
        await self.send(updates.SessionInfoUpdate(meta=meta))

    @property
    def mcp(self) -> SessionServers:
        """The MCP servers that the client gave to this session.

        They are connected when they are first used, or earlier by `session.mcp.start()`.
        """
        if self._mcp is None:
            from accord.agent.session_mcp import SessionServers  # few agents use MCP servers
            from accord.mcp.server_transports import Surroundings

            client = self._link.client
            folders = [str(folder) for folder in self.roots.folders]
            surroundings = Surroundings(client.peer, self.id, folders, client.lines())
            self._mcp = SessionServers(self.mcp_servers, surroundings, self._updates, self._turns)
            self.resources.push_async_callback(self._mcp.close)
        return self._mcp

    def provider(self, provider_id: str) -> Endpoint | None:
        """Return where the models of this provider are reached now; None while the client has it disabled.

        A turn keeps the endpoint that it began with: see `turn.provider`.
        """
        return endpoint_of(self._connection.providers.current, provider_id, "session.provider()")

    def resolve(self, path: str | PathLike[str]) -> str:
        """Return this path as an absolute one; a relative path starts at `cwd`."""
        return str(self.cwd / path)

    async def history(self) -> SessionState:
        """Return the whole conversation so far, including the part before the session was loaded.

        It is read from the store each time, so a long session takes no memory between two calls: call it once a turn,
        for the messages that a model should see.
        """
        return await self._record.history()

    async def messages_for(self, api: Api) -> list[Any]:
        """Return the conversation so far as messages for a model, as plain dicts that a request of this API takes.

        >>> async def ask(session, client):
        ...     messages = [{"role": "system", "content": "Be brief."}, *await session.messages_for("openai")]
        ...     return await client.chat.completions.create(model="gpt-5", messages=messages, stream=True)

        `api` is `anthropic` for Anthropic's messages, `openai` for OpenAI's chat completions and compatible APIs, or
        `responses` for the `input` of OpenAI's responses. The prompt of the running turn is the last. A tool call that
        has a name is included with its input, and its raw output or text as the result, however it ended.
        """
        from accord.agent.model_messages import API_WORDS, messages_of, wire_messages  # few agents build requests

        check_word("session.messages_for(api)", api, API_WORDS)
        return wire_messages(api, messages_of(await self.history()))

    def tool_call(self, tool_call_id: updates.ToolCallId) -> ToolCallState | None:
        """Return the state of a tool call that is not finished."""
        return self._updates.tool_call(tool_call_id)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """Return a tool call with the changes that a permission request makes; for services, see `ServedSession`."""
        return self._updates.fold(said)

    async def send(self, update: updates.Update) -> None:
        """Send an update to the client, in a turn or between two.

        Usually there is a shorter way: `turn.say`, `turn.plan`, `session.set_title` and the like.
        """
        check_update("session.send()", update)
        await self._updates.send(update)

    def extension(self, extension: type[ExtensionT]) -> ExtensionT:
        """Return this extension in this session, to send its messages; `offer` is the client's declaration of it."""
        return extension(self.client, self)

    async def notice(
        self,
        title: str,
        description: str | None = None,
        *,
        severity: str = "info",
        fallback: bool = False,
        meta: JsonObject | None = None,
    ) -> bool:
        """Show the user a notice beside the conversation, in a turn or between two.

        Returns False, and sends nothing, if the client shows no notices; with `fallback` the agent then says it as a
        message.
        """
        notice = with_meta("session.notice", updates.Notice(severity, title, description), meta)
        check_sendable("session.notice()", notice)
        if self._updates.client_shows("session.notices"):
            await self._updates.send(notice)
            return True
        if fallback:
            await self._updates.send(
                updates.AgentMessageChunk.of(title if description is None else f"{title}: {description}")
            )
        return fallback

    async def suggest(
        self, *prompts: str | v1.ContentBlock | Sequence[str | v1.ContentBlock], meta: JsonObject | None = None
    ) -> bool:
        """Suggest prompts that the user may want to send next, the likeliest first; they replace earlier ones.

        >>> async def after_the_tests(session):
        ...     await session.suggest("Fix the failing test", "Show me the log")

        A prompt of several blocks is a list. Without arguments, the suggestions are removed. A prompt with content that
        the client does not offer is left out. Returns False, and sends nothing, if it offers no suggestions at all:
        then the agent need not make any, see `session.offers_suggestions`. `meta` is the `_meta` of the update.
        """
        check_meta("session.suggest(meta=...)", meta)
        suggestions = [self._suggestion(prompt) for prompt in prompts]
        if not self.offers_suggestions:
            return False
        fitting = [it for it in suggestions if all(map(self._offers_suggested, it.prompt))]
        await self._updates.send(updates.PromptSuggestionsUpdate(fitting, meta=meta))
        return True

    @property
    def skills(self) -> Sequence[AgentSkill]:
        """The session's skills from `Agent(skills=...)`."""
        return self.commands.skills

    @property
    def offers_suggestions(self) -> bool:
        """Whether the client shows the prompts that `suggest` sends."""
        return self._updates.client_shows("session.prompt_suggestions")

    def _suggestion(self, prompt: str | v1.ContentBlock | Sequence[str | v1.ContentBlock]) -> updates.PromptSuggestion:
        """Return this prompt in the form of a suggestion; raises TypeError or ValueError."""
        parts = prompt if isinstance(prompt, list | tuple) else (cast("str | v1.ContentBlock", prompt),)
        blocks = [content_block("session.suggest()", part) for part in parts]
        # schema, PromptSuggestion: it can be sent unchanged, and is more than blank text.
        if all(isinstance(block, v1.TextContent) and not block.text.strip() for block in blocks):
            raise ValueError(f"session.suggest() takes prompts that are not empty, got {prompt!r}")
        for block in blocks:
            if not self._connection.offers.allow(block):
                raise ValueError(
                    f"session.suggest() got {type(block).__name__}, which the agent does not take in prompts"
                )
        return updates.PromptSuggestion(blocks)

    def _offers_suggested(self, block: v1.ContentBlock) -> bool:
        """Whether the client offers suggestions with this kind of content."""
        needed = getattr(block, "__needs__", None)
        return needed is None or self._updates.client_shows(f"session.prompt_suggestions.{needed.rpartition('.')[2]}")

    def compaction(self, *, meta: JsonObject | None = None) -> RunningCompaction:
        """A compaction of the agent's context, as a context manager, in a turn or between two.

        >>> async def shorten(session):
        ...     async with session.compaction() as compaction:
        ...         await compaction.summary("So far: ...")

        The end of its block completes it, an error fails it, a cancel cancels it. A client that shows no compactions is
        sent nothing. The conversation that the user sees does not change. `meta` is the compaction's `_meta`.
        """
        self._compactions += 1
        compaction_id = updates.CompactionId(self._record.id_for(f"c{self._compactions}"))
        return RunningCompaction(self._updates, compaction_id, meta)

    def on(self, message: type[MessageT]) -> Registration[MessageT]:
        """Handle this message of the client in this session only, until `remove` is called or the session is closed.

        >>> def listen(session, message):
        ...     on_message = session.on(message)
        ...     on_message(print)
        ...     return on_message.remove

        It runs before the handler of all sessions, built-in or yours.
        """
        return Registration(partial(self._link.client.on_in_session, self.id, message))

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run this beside the session's turns, until it is done or the session is closed.

        A tool call of its own needs `turn.tool(..., background=True)`; to speak, begin work with `session.work`.
        """
        if not asyncio.iscoroutine(work):
            raise wrong_type("session.start()", "a coroutine, such as watch(session)", work)
        return self._tasks.start(work)

    def work(self) -> AbstractAsyncContextManager[Turn[StateT]]:
        """Begin to work without a prompt: a context manager that gives a `Turn` whose prompt is empty.

        >>> async def report(session):
        ...     async with session.work() as turn:
        ...         await turn.say("The tests have passed.")

        It waits until no turn runs, and prompts that arrive meanwhile wait for it. If the user cancels it, its block
        ends, and the code after it continues.
        """
        from accord.agent.turn import background_turn

        return background_turn(self)

    @property
    def background(self) -> Sequence[updates.BackgroundWork]:
        """The client's view of what runs beside the turns: tool calls with `background=True`, and their terminals.

        >>> def is_watching(session):
        ...     return bool(session.background)
        """
        from accord.dialects.v2_dialect import background_work  # loads the types of version 2

        return tuple(background_work(it) for it in self._activity.background)

    async def save(self) -> None:
        """Save `state` now. It is also saved at the end of a turn, and when the session is closed."""
        if self._connection.agent.state_type is not None:
            await self._record.keep_state(self.state)

    def __repr__(self) -> str:
        return f"Session({self.id!r}, cwd={str(self.cwd)!r})"

    # For its connection

    def _open(self) -> None:
        """Send changes of settings from now on: the answer that opens the session contains the present ones."""
        self._updates.is_open = True

    def _known(self) -> None:
        """Note that the client knows the session: its commands are sent, and from now on updates are sent at once."""
        self._updates.known()
        if not self._is_announced:
            self._is_announced = True
            if (self.commands or self.skills) and not self._updates.dialect.commands_come_with_answers:
                # slash-commands, Advertising commands: once the session exists.
                self._updates.report(*self._updates.dialect.fitted(offered(self.commands)))

    @property
    def _is_working(self) -> bool:
        """Whether it works on a prompt or on its own, including background work."""
        return self._turns.running or bool(self._activity.background)

    async def _tell_usage(self) -> None:
        """Report to a client that resumes the session how full its context is."""
        # rfd-session-usage, Frequently asked questions. A client that loads the session finds it in the replay.
        frame = await self._record.usage()
        if frame is not None:
            self._updates.tell(frame)

    @cached_property
    def _has_cursors(self) -> bool:
        """Whether the client learns where the session can be forked."""
        peer = self._updates.peer
        if not self._connection.agent.can_rewind or not peer.capabilities.has("session.cursors"):
            return False
        return self._record.version == 1 or peer.unstable or CURSORS in (peer.capabilities.declared.meta or {})

    async def _tell_cursors(self, *, of_all: bool = False) -> None:
        """Report to the client where the session can be forked: at the latest messages, or at all."""
        if self._has_cursors:
            for cursor in await self._record.new_cursors(of_all=of_all):
                self._updates.report(cursor)

    async def _begin_turn(self, prompt: Sequence[v1.ContentBlock], receipt: KeptPrompt | None = None) -> None:
        """Begin a turn. The user's first text that is not a command is the title, in a store that the author chose.

        In version 2, `receipt` has the prompt as it was sent, and is notified when it is stored.
        """
        if receipt is not None and receipt.interrupted is not None:
            await self._record.begin_again(receipt.interrupted)
            receipt.kept(self, receipt.interrupted, None)
            self._prompt_title = None
            self._activity.become("running")
            return
        wants_title = (
            self._record.title is None
            and self._connection.agent.titles_sessions
            and not called_by(prompt, self.commands)
        )
        self._prompt_title = title_of(text_of(prompt)) if wants_title else None
        if receipt is None:
            kept = await self._record.keep_prompt(prompt, self._prompt_title)
        else:
            kept = await self._record.keep_prompt(receipt.prompt, self._prompt_title, receipt.key)
        if receipt is not None:
            receipt.kept(self, self._record.message_id, kept[0])
        if self._prompt_title is not None and self._updates.tell(self._record.frame(kept[-1])):
            await self._updates.breathe()
        self._activity.become("running")
        if self._mcp is not None:
            await self._mcp.tell_failures()

    def _cancel(self, session_id: str) -> None:
        """Cancel the turns, or the subagent with this id, if the author allows that."""
        if session_id == self.id:
            self._turns.cancel()
        elif (stop := self._subagents.get(v1.SessionId(session_id))) is not None:
            stop()

    def _name_of_work(self) -> str:
        """Return a name for the next work without a prompt, for the ids of its messages and tool calls."""
        self._works += 1
        return f"w{self._works}-"

    async def _forget_turn(self) -> None:
        """Forget a refused turn: nothing of it is part of the conversation, and it gives no title."""
        # schema, StopReason: the prompt and what followed it are not in the next prompt.
        await self._record.forget_prompt()
        self._updates.forget_tool_calls()
        if self._prompt_title is not None and self._record.title == self._prompt_title:
            await self.set_title(None)

    async def _keep_end(self, stop_reason: str, *, is_cancelled: bool) -> None:
        """Store that a turn has ended, for later attempts of its prompts; a turn that ended with its connection is
        interrupted.
        """
        if self._updates.peer.connection.is_open or (stop_reason and not is_cancelled):
            await self._record.keep_end("cancelled" if is_cancelled else stop_reason or "error")

    async def _close(self) -> None:
        """Cancel running turns, save the state and free the session's resources."""
        self._updates.is_open = False
        await self._tasks.end(self._connection.agent.cancel_grace)
        await self._turns.end()
        if (interceptors := self._link.client.interceptors) is not None:
            interceptors.forget_session(self.id)
        try:
            await self.save()
        except StoreError as error:
            log.info("the state of session %s was not saved: %s", self.id, error)
        try:
            await self.resources.aclose()
        except Exception:
            log.exception("closing the resources of session %s failed", self.id)
        self._record.release()


def _state_of(state_type: type[Any] | None, record: Record) -> Any:
    """Return the author's state of a session: from the store, or new."""
    if state_type is None:
        return None
    kept = record.state(state_type)
    return state_type() if kept is None else kept
