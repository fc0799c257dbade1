"""The `Turn`: an author's function holds it while it works on one prompt."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, nullcontext
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec
from msgspec import UNSET

from accord._internal.endpoint import Endpoint
from accord.agent.agent_capabilities import text_of
from accord.agent.model_providers import Current, endpoint_of
from accord.agent.plan import PlanChange, PlanDocument, TurnPlan
from accord.agent.record import SessionUpdates
from accord.agent.remote_client import RemoteClient, SessionClient
from accord.agent.session import Session, StateT
from accord.agent.session_activity import CANCELLED, DetachedTool, QueuedPrompt, ToolSurroundings
from accord.agent.tool import Location, Tool
from accord.agent.user_questions import Decision, Elicits, Offered
from accord.dialects import ActivityEnd, Dialect, Failure
from accord.engine.peer import Context
from accord.errors import INTERNAL_ERROR, RequestError
from accord.mistakes import check_extensible_word, check_text, shortened, wrong_type
from accord.schema import v1
from accord.schema.base import Json, JsonObject, Request
from accord.schema.sendable import check_meta, check_sendable, check_update, content_block, with_meta
from accord.session import updates
from accord.session.updates import Usage

T = TypeVar("T")
ResultT = TypeVar("ResultT")

ASKS_THE_USER = (v1.RequestPermissionRequest, v1.CreateElicitationRequest)


class TurnRequests:
    """The requests of one turn, which end with it. It is the `Requester` of the objects that the turn hands out."""

    __slots__ = ("_link", "_place", "_questions", "_session", "asking", "beside")

    def __init__(self, session: Session, place: QueuedPrompt, link: SessionClient) -> None:
        self.beside = 0
        """How many tasks run beside the author's function."""
        self._session = session
        self._place = place
        self._link = link
        self._questions = 0
        """How many questions to the user are open."""
        self.asking: set[asyncio.Task[Any]] = set()
        """The tasks that wait for answers."""

    async def request(self, request: Request[ResultT], *, force: bool = False) -> ResultT:
        """Send the client any request. It is cancelled when the turn ends, whichever task sent it."""
        if not issubclass(type(request), ASKS_THE_USER):
            return await self._while_it_lasts(self._link.requester.request(request, force=force))
        if self._place.is_cancelled:
            # prompt-turn, Cancellation: the client has answered all open questions; do not ask its user again.
            raise asyncio.CancelledError
        self._questions += 1
        try:
            with self._waiting_for_user():
                return await self._while_it_lasts(self._link.requester.request(request, force=force))
        finally:
            self._questions -= 1

    def _waiting_for_user(self) -> AbstractContextManager[None]:
        """The session waits for its user, if each of the turn's tasks does."""
        if self._questions <= self.beside:
            return nullcontext()
        return self._session._activity.waiting_for_user()

    def one_less_beside(self, _: asyncio.Task[Any]) -> None:
        self.beside -= 1

    async def request_raw(self, method: str, params: Json = None, *, session_id: str | None = None) -> Json:
        """The same, in plain JSON values."""
        session_id = session_id or self._session.id
        return await self._while_it_lasts(self._link.requester.request_raw(method, params, session_id=session_id))

    async def _while_it_lasts(self, asking: Awaitable[T]) -> T:
        task = asyncio.current_task()
        if task is None or task in self.asking:
            return await asking
        self.asking.add(task)
        try:
            return await asking
        finally:
            self.asking.discard(task)

    def cancel(self) -> None:
        """Cancel the open requests, but the current task's."""
        current = asyncio.current_task()
        for task in self.asking:
            if task is not current:
                task.cancel()


def meant_by(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return an author's exception without the groups around it; an answer that the author chose takes precedence."""
    raised = list(_each(group))
    chosen = next((error for error in raised if isinstance(error, RequestError)), None)
    if chosen is not None:
        return chosen
    return raised[0] if len(raised) == 1 else group.exceptions[0]


def _each(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _each(inner)
    else:
        yield error


async def _too_late(_: updates.Update) -> None:
    # overview, Message Flow: a turn's updates come before its answer.
    raise RuntimeError("this turn is over; use session.send to tell the client something between turns")


class SentMessage:
    """A message of the agent that can be replaced later.

    >>> async def work(turn):
    ...     message = await turn.message("Searching ...")
    ...     await message.replace("Found 3 places.")

    Version 1 cannot replace messages: its clients get the replacement as another message.
    """

    def __init__(self, send: Callable[[Any], Awaitable[None]], dialect: Dialect, new_id: Callable[[], str]) -> None:
        self._send = send
        self._dialect = dialect
        self._new_id = new_id
        self._was_sent = False
        self.id: updates.MessageId = updates.MessageId(new_id())
        """The message's id; with version 1, that of the latest message."""

    async def replace(self, *content: str | v1.ContentBlock, meta: JsonObject | None = None) -> None:
        """Replace the message; `meta` is the message's `_meta`."""
        blocks = message_blocks("message.replace()", content)
        if self._was_sent and not self._dialect.replaces_messages:
            self.id = updates.MessageId(self._new_id())
        self._was_sent = True
        await self._put(blocks, meta)

    async def clear(self) -> bool:
        """Remove the message. Returns False, and sends nothing, in version 1, where it stays."""
        if self._dialect.replaces_messages:
            await self._put(())
        return self._dialect.replaces_messages

    async def _put(self, blocks: Sequence[v1.ContentBlock], meta: JsonObject | None = None) -> None:
        for update in self._dialect.message(self.id, blocks):
            await self._send(with_meta("message", update, meta))


def message_blocks(call: str, content: Sequence[str | v1.ContentBlock]) -> list[v1.ContentBlock]:
    """Return the blocks of a message; raises ValueError for an empty message."""
    if not content:
        raise ValueError(f"{call} needs text or a content block; clear() takes a message back")
    return [content_block(call, it) for it in content]


SEVERITIES = ("info", "warning", "error")

if TYPE_CHECKING:
    from accord.agent.model_answer import ModelAnswer, ModelStream
    from accord.agent.skills import AgentSkill
    from accord.agent.subagent import Subagent
    from accord.agent.workspace import TurnFiles


class AddedPrompt(msgspec.Struct, frozen=True):
    """A prompt that arrived during a turn and was added to it."""

    prompt: Sequence[v1.ContentBlock]
    """The prompt as it was sent: blocks of text, links, images and so on."""
    meta: JsonObject
    """The `_meta` of the prompt."""

    @property
    def text(self) -> str:
        """The prompt's text."""
        return text_of(self.prompt)


class Turn(Elicits, Generic[StateT]):
    """One prompt and the work on it.

    >>> async def reply(turn: Turn) -> None:
    ...     await turn.say(f"You said: {turn.text}")

    It lasts until the function returns. Open requests to the client are then cancelled, and sending more updates is an
    error: the answer is on its way. `turn.session.send` may speak later.
    """

    def __init__(
        self,
        session: Session[StateT],
        context: Context,
        place: QueuedPrompt,
        request: v1.PromptRequest,
        *,
        name: str = "",
        link: SessionClient | None = None,
        updates: SessionUpdates | None = None,
        requests: TurnRequests | None = None,
    ) -> None:
        self.session: Session[StateT] = session
        """The session, which outlasts the turn."""
        self.prompt: list[v1.ContentBlock] = request.prompt
        """The prompt as it was sent: blocks of text, links, images and so on."""
        self.command: str | None = None
        """The slash command that the prompt calls, if it calls one that exists."""
        self.arguments = ""
        """The text after the command's name."""
        self.meta: JsonObject = request.meta or {}
        """The `_meta` of the prompt."""
        self.answer_meta: JsonObject = {}
        """The `_meta` of the answer."""
        self.context = context
        """The context of the request on the low level: the peer and the request's id."""
        self._link = link = link or session._link
        """The session and the peer for requests to the client."""
        self._requests = requests or TurnRequests(session, place, link)
        self.client: RemoteClient = RemoteClient(link, self._requests)
        """The services that the client lends: files and terminals."""
        self._client = self.client
        self._scope = {"session_id": link.session_id}
        self._place = place
        self._name = name
        """Distinguishes the ids of this work from those of other work for the same prompt."""
        self._made = 0
        """How many ids were made."""
        self._updates = updates = updates or session._updates
        """Sends the session's updates, in the turn and after it."""
        self._send: Callable[[Any], Coroutine[Any, Any, None]] = updates.send
        """Sends an update; an error once the turn is over."""
        self._dialect = updates.dialect
        self._plans = session._plans
        """The plans that the session shows."""
        self._inner: list[Turn] = []
        """The subagents of the turn that are at work; they end with it."""
        self._tasks = asyncio.TaskGroup()
        """The tasks beside the author's function."""
        self._spent: Usage | None = None
        """The tokens that the answer reports."""
        self._endpoints: Current = {}
        """The endpoints of the providers, as they were when the turn began."""
        self._speaker: type[object] | None = None
        self._message_id = v1.MessageId("")

    def __repr__(self) -> str:
        return f"Turn({shortened(self.text)!r}, session={self.session.id!r})"

    @property
    def text(self) -> str:
        """The prompt's text."""
        return text_of(self.prompt)

    @property
    def cwd(self) -> Path:
        """The session's folder."""
        return self.session.cwd

    @property
    def files(self) -> TurnFiles:
        """The session's files: the client's if it lends them, else those of this machine inside its folders."""
        from accord.agent.workspace import TurnFiles  # loads what reads and writes files here

        return TurnFiles(self.session, self.session._record, self.client, self._link.client)

    @property
    def skills(self) -> Sequence[AgentSkill]:
        """Return the skills that the prompt names, by `/name` at its beginning or by blocks; `read` returns their
        text.
        """
        if not self.session.skills:
            return ()
        from accord.agent.skills import named_skills

        return named_skills(self.prompt, self.session.skills)

    async def prompts(self) -> AsyncGenerator[AddedPrompt]:
        """The prompts that the user has sent since the turn began, with `Agent(prompt_while_working="steer")`.

        >>> async def work(turn):
        ...     async for more in turn.prompts():
        ...         await turn.say(f"You add: {more.text}")

        It yields them one by one, and ends when none waits: call it again between two steps of the work. A prompt that
        the turn does not take becomes a turn of its own.
        """
        while (added := await self._place.taken()) is not None:
            self.end_message()
            yield added

    # Speaking

    # Without the star that other methods have before `meta`: it would make each call 3 % dearer.
    def say(self, content: str | v1.ContentBlock, meta: JsonObject | None = None) -> Coroutine[Any, Any, None]:
        """Send text, in Markdown, or any other content to the user.

        Consecutive calls with nothing between them form one message. `meta` is the `_meta` of this part of it.
        """
        dialect = self._dialect
        block = v1.TextContent(content) if isinstance(content, str) else content_block("turn.say()", content)
        if self._speaker is not dialect.agent_chunk:
            self._begin_message(dialect.agent_chunk)
        # Not an `async def` of its own: a model's answer is thousands of these. A local name is called faster.
        send = self._send
        if meta is None:
            return send(dialect.agent_chunk(block, self._message_id))
        return send(with_meta("turn.say", dialect.agent_chunk(block, self._message_id), meta))

    async def message(self, *content: str | v1.ContentBlock, meta: JsonObject | None = None) -> SentMessage:
        """Send a separate message, with this `_meta`; the result replaces or removes it.

        >>> async def work(turn):
        ...     message = await turn.message("Searching ...")
        ...     await message.replace("Found 3 places.")
        """
        self.end_message()
        blocks = message_blocks("turn.message()", content)
        message = SentMessage(self._send, self._dialect, lambda: self._new_id("m"))
        await message.replace(*blocks, meta=meta)
        return message

    async def think(self, content: str | v1.ContentBlock, *, meta: JsonObject | None = None) -> None:
        """Show a thought: text, or any other content, with this `_meta`."""
        dialect = self._dialect
        block = v1.TextContent(content) if isinstance(content, str) else content_block("turn.think()", content)
        if self._speaker is not dialect.thought_chunk:
            self._begin_message(dialect.thought_chunk)
        if meta is None:
            await self._send(dialect.thought_chunk(block, self._message_id))
        else:
            await self._send(with_meta("turn.think", dialect.thought_chunk(block, self._message_id), meta))

    async def stream_answer(self, stream: ModelStream, *, context: int | None = None) -> ModelAnswer:
        """Say a model's answer as it streams, and return the whole answer, with its tool calls.

        >>> async def ask(turn, stream):
        ...     answer = await turn.stream_answer(stream)
        ...     for call in answer.calls:
        ...         async with turn.tool(call.name, name=call.name, raw_input=call.input) as tool:
        ...             await tool.raw_output("done")

        `stream` has the events of OpenAI's chat completions, OpenAI's responses or Anthropic's messages: objects of
        their packages, dicts, or lines of server-sent events. It is closed at the end. The tokens are counted in the
        turn's answer; with `context`, the size of the model's context, the user sees how full it is. Raises
        RequestError if the provider reports a failure, or the answer breaks off.
        """
        from accord.agent.model_answer import ModelAnswer, TextDelta, ThoughtDelta, events_of  # few agents ask models
        from accord.agent.model_messages import THOUGHT_KEY

        answer = ModelAnswer()
        async with aclosing(events_of(stream)) as events:
            async for event in events:
                for added in answer.add(event):
                    if isinstance(added, TextDelta):
                        await self.say(added.text)
                    elif isinstance(added, ThoughtDelta):
                        await self.think(added.text)
                    else:
                        await self.think(v1.TextContent("", meta={THOUGHT_KEY: added.raw}))
        answer.check()
        used, before = answer.usage, self._spent or v1.Usage(0, 0, 0)
        thought = used.thought if before.thought_tokens is None else before.thought_tokens + (used.thought or 0)
        self.tokens(before.input_tokens + used.input, before.output_tokens + used.output, thought=thought)
        await self.usage(used.input + used.output, context)
        return answer

    async def say_as_user(self, content: str | v1.ContentBlock, *, meta: JsonObject | None = None) -> None:
        """Send a message in the user's name, with this `_meta`."""
        dialect = self._dialect
        block = content_block("turn.say_as_user()", content)
        if self._speaker is not dialect.user_chunk:
            self._begin_message(dialect.user_chunk)
        await self._send(with_meta("turn.say_as_user", dialect.user_chunk(block, self._message_id), meta))

    def end_message(self) -> None:
        """End the current message: the next text begins another."""
        self._speaker = None

    async def notice(
        self, title: str, description: str | None = None, *, severity: str = "info", meta: JsonObject | None = None
    ) -> bool:
        """Show the user a notice beside the conversation. Returns False, and sends nothing, if the client shows no
        notices.
        """
        check_extensible_word("turn.notice(severity=...)", severity, SEVERITIES)
        notice = with_meta("turn.notice", updates.Notice(severity, title, description), meta)
        if not self.client.capabilities.has("session.notices"):
            return False
        await self._send(notice)
        return True

    async def send(self, update: updates.Update) -> None:
        """Send any update, such as one without a method here."""
        check_update("turn.send()", update)
        await self._send(update)

    def _begin_message(self, speaker: type[object]) -> None:
        # prompt-turn, Message IDs: the chunks of one message share an id, and the next message has another.
        self._speaker = speaker
        self._message_id = updates.MessageId(self._new_id("m"))

    async def _send_unchecked(self, update: updates.Update) -> None:
        """Send an update that Accord has made, whose values were checked before."""
        await self._send(update)

    # Working

    async def plan(
        self,
        *steps: str | updates.PlanEntry,
        id: str | None = None,  # noqa: A002
        meta: JsonObject | None = None,
    ) -> TurnPlan:
        """Show a plan; the result marks its steps.

        A plan with an `id` is shown beside the session's others. A client that shows only one plan gets the steps of
        all. `meta` is the `_meta` of each update of the plan.
        """
        check_meta("turn.plan(meta=...)", meta)
        if id is not None:
            check_text("turn.plan(id)", id)
        plan = TurnPlan(self._send_plan, steps, id, meta)
        await plan.send()
        return plan

    async def plan_document(
        self,
        content: str | PurePath,
        *,
        id: str | None = None,  # noqa: A002
        meta: JsonObject | None = None,
    ) -> PlanDocument:
        """Show a plan as a document: Markdown, as text or in a file. The result replaces or removes it.

        A file is read now, and its path is sent to the client. A client that shows only one plan gets the list items as
        steps. `meta` is the `_meta` of each update of the plan.
        """
        check_meta("turn.plan_document(meta=...)", meta)
        if id is not None:
            check_text("turn.plan_document(id)", id)
        plan_id = updates.PlanId(id or self._new_id("p"))
        document = PlanDocument(self._send_plan, plan_id, self.cwd, meta)
        await document.replace(content)
        return document

    async def _send_plan(self, change: PlanChange) -> None:
        await self._send(self._plans.fitted(change))

    def tool(
        self,
        title: str,
        *,
        kind: updates.ToolKind | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002
        locations: Sequence[Location] = (),
        raw_input: Json = None,
        background: bool = False,
        cancellable: bool = False,
        meta: JsonObject | None = None,
    ) -> Tool:
        """Show a tool call, as a context manager.

        >>> async def work(turn):
        ...     async with turn.tool("Add up", kind="think") as tool:
        ...         await tool.text(str(2 + 2))

        With `background` it may outlive the turn, in a task of `session.start`. With `cancellable` the client may
        cancel it alone: its block then ends, `tool.is_cancelled` is true, and the turn continues. Clients of version 2
        see both; those of version 1 see an ordinary tool call. `meta` is the tool call's `_meta`, which `tool.set_meta`
        changes.
        """
        check_text("turn.tool()", title)
        check_meta("turn.tool(meta=...)", meta)
        tool_call_id = updates.ToolCallId(id or self._new_id("t"))
        session = self.session
        detached = None
        if background or cancellable:
            detached = DetachedTool(
                session._activity, session._cancels, in_background=background, cancellable=cancellable
            )
        surroundings = ToolSurroundings(
            session=self._link,
            client=self.session.client if background else self.client,
            requester=self._link.requester if background else self._requests,
            permissions=self.session.permissions,
            end_message=self.end_message,
            send=self._updates.send if background else self._send_unchecked,
            updates=self._updates,
            cancels=session._cancels,
            detached=detached,
        )
        return Tool(
            surroundings, tool_call_id, title, kind=kind, name=name, locations=locations, raw_input=raw_input, meta=meta
        )

    async def ask(
        self,
        title: str,
        *options: Offered,
        kind: updates.ToolKind | None = None,
        about: str | None = None,
        meta: JsonObject | None = None,
    ) -> Decision:
        """Ask the user's permission for something that is not a tool call; see `Tool.ask`."""
        async with self.tool(title, kind=kind) as tool:
            return await tool.ask(*options, about=about, meta=meta)

    def subagent(
        self,
        title: str,
        prompt: str | v1.ContentBlock | None = None,
        *,
        description: str | None = None,
        cancellable: bool = False,
        meta: JsonObject | None = None,
    ) -> Subagent[StateT]:
        """Return a context manager that runs a subagent: a turn in its own session, which the user can follow.

        >>> async def work(turn):
        ...     async with turn.subagent("Look for callers", "Who calls parse()?") as subagent:
        ...         await subagent.say("Two places: ...")

        `prompt` is its task. With `cancellable`, the user may cancel it alone: its block ends, and the code after the
        block continues. A client that shows no subagents shows a tool call with the subagent's text. `meta` is the
        `_meta` of the update that announces it.
        """
        from accord.agent.subagent import Introduction, Subagent  # few agents have subagents

        check_text("turn.subagent()", title)
        blocks = [] if prompt is None else [content_block("turn.subagent(prompt)", prompt)]
        check_meta("turn.subagent(meta=...)", meta)
        introduction = Introduction(title, description, cancellable, blocks, meta)
        return Subagent(self, introduction)

    async def usage(
        self,
        used: int,
        size: int | None,
        cost: float | updates.Cost | None = None,
        currency: str = "USD",
        *,
        meta: JsonObject | None = None,
    ) -> bool:
        """Report how full the model's context is, and what the session has cost so far.

        Returns False, and sends nothing, while the size of the context is not known (None, or 0). The latest report is
        repeated to a client that resumes the session.
        """
        # rfd-session-usage, Context Window Fields: no update rather than one without a size.
        if not size:
            return False
        price = updates.Cost(cost, currency) if isinstance(cost, float | int) else cost
        update = with_meta("turn.usage", updates.UsageUpdate(used, size, UNSET if price is None else price), meta)
        check_sendable("turn.usage()", update)
        await self._send(update)
        return True

    def tokens(
        self,
        input: int,  # noqa: A002
        output: int,
        *,
        total: int | None = None,
        thought: int | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        """Report the tokens that the model has read and written, for the turn's answer.

        This is only proposed: the answer includes them if the agent has `unstable=True`.
        """
        spent = updates.Usage(input + output if total is None else total, input, output, thought)
        self._spent = with_meta("turn.tokens", spent, meta)

    def provider(self, provider_id: str) -> Endpoint | None:
        """Return the endpoint of this provider's models; None while the client has it disabled.

        It stays the same for the whole turn. When the client has set another endpoint, do not send your own key there.
        """
        return endpoint_of(self._endpoints, provider_id, "turn.provider()")

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run this beside the turn. The turn ends only when it is done, and a cancel ends both."""
        if not asyncio.iscoroutine(work):
            raise wrong_type("turn.start()", "a coroutine, such as work(turn)", work)
        task = self._tasks.create_task(work)
        self._requests.beside += 1
        task.add_done_callback(self._requests.one_less_beside)
        return task

    # For its connection

    def _new_id(self, kind: str) -> str:
        """Return an id for a message or a tool call that is unique in the session."""
        self._made += 1
        return self.session._record.id_for(f"{self._name}{kind}{self._made}")

    def _end(self) -> None:
        """Refuse updates from now on and cancel open requests: the function has returned."""
        self._send = _too_late
        for subagent in self._inner:
            subagent._end()
        if self._requests.asking:
            self._requests.cancel()


# Work that an agent begins itself is a stretch of foreground work like a turn, without a prompt: it has a place in
# the same queue, the client can cancel it, and in version 2 it is reported by `running` and `idle`. In version 1 its
# updates come between two turns.


@asynccontextmanager
async def background_turn(session: Session) -> AsyncGenerator[Turn]:
    """Work in this session without a prompt; waits until no turn runs."""
    task = asyncio.current_task()
    if session._turns.runs_in(task):
        raise RuntimeError("session.work() inside a turn would wait for that turn; use the turn itself")
    place = session._turns.place(is_own=True)
    request = v1.PromptRequest(session.id, [])
    turn = Turn(session, Context(session._updates.peer), place, request, name=session._name_of_work())
    has_begun = is_over = is_stopped = False

    def ended(error: BaseException | None) -> bool:
        nonlocal is_over
        if not is_over:
            is_over = True
            turn._end()
            failure = None if not isinstance(error, Exception) else _failure(error)
            reason = CANCELLED if place.is_cancelled or is_stopped else "end_turn"
            session._activity.idle(ActivityEnd(stop_reason=reason, meta=turn.answer_meta or None, failure=failure))
        return False

    with place:
        if has_begun := await place.comes():
            # Only work that has begun has an end to report.
            place.at_end = ended
            place.on_overdue = lambda: _ignore(ended(None))
            session._activity.become("running")
            try:
                async with turn._tasks:
                    yield turn
            except BaseExceptionGroup as group:
                raise meant_by(group) from None
            except asyncio.CancelledError:
                is_stopped = not place.is_cancelled
                raise
            finally:
                turn._end()
                await session.save()
                await session._tell_cursors()
                if session._record.awaits_end:
                    await session._keep_end("end_turn", is_cancelled=place.is_cancelled)
    if not has_begun:
        raise RuntimeError("the session was closed before its own work could begin")
    if is_stopped:
        raise asyncio.CancelledError  # something has cancelled the task, and not the client this work
    if place.is_cancelled and task is not None:
        task.uncancel()  # the cancellation was for this work, not for what its task does next


def _failure(error: Exception) -> Failure:
    if isinstance(error, RequestError):
        return Failure(error.code, error.message, error.data)
    return Failure(INTERNAL_ERROR, "Internal error")


def _ignore(_: object) -> None: ...
