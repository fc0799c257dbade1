"""What an author's function holds while it works on one prompt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path, PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import msgspec

from accord.agent.content import text_of
from accord.agent.elicitation import Elicits
from accord.agent.permission import Decision, Offered
from accord.agent.plan import PlanDocument, TurnPlan
from accord.agent.plans import PlanChange
from accord.agent.providers import endpoint_of
from accord.agent.remote_client import RemoteClient
from accord.agent.running_turn import RunningTurn
from accord.agent.sent_message import SentMessage, message_blocks
from accord.agent.session import Session, StateT
from accord.agent.subagent import Introduction, RunningSubagent, way_out_for
from accord.agent.tool import CommandParts, Location, Tool, ToolSurroundings
from accord.agent.tool_life import ToolLife
from accord.arguments import check_extensible_word, check_text, check_update, content_block, shortened, wrong_type
from accord.endpoints import Endpoint
from accord.schema import v1
from accord.schema.base import Json
from accord.schema.sendable import check_sendable

SEVERITIES = ("info", "warning", "error")

if TYPE_CHECKING:
    from accord.agent.files import TurnFiles

T = TypeVar("T")


class AddedPrompt(msgspec.Struct, frozen=True):
    """A prompt that came while a turn was running, and that the turn has taken."""

    prompt: Sequence[v1.ContentBlock]
    """The prompt as it came: blocks of text, links, images and so on."""
    meta: dict[str, Json]
    """The `_meta` of the prompt."""

    @property
    def text(self) -> str:
        """The prompt's text."""
        return text_of(self.prompt)


class Turn(Elicits, Generic[StateT]):
    """One prompt being worked on.

    >>> async def reply(turn: Turn) -> None:
    ...     await turn.say(f"You said: {turn.text}")

    It lasts until the function returns. Open requests to the client are then cancelled, and sending more updates is an
    error: the answer is on its way. `turn.session.send` may speak later.
    """

    def __init__(self, running: RunningTurn, request: v1.PromptRequest) -> None:
        self.session: Session[StateT] = running.session.face
        """The session, which outlasts the turn."""
        self.prompt = request.prompt
        """The prompt as it came: blocks of text, links, images and so on."""
        self.command: str | None = None
        """The slash command that the prompt calls, if it calls one that there is."""
        self.arguments = ""
        """The text after the command's name."""
        self.meta: dict[str, Json] = request.meta or {}
        """The `_meta` of the prompt."""
        self.answer_meta: dict[str, Json] = {}
        """What the answer's `_meta` will hold."""
        self.context = running.context
        """The context of the request on the low level: the peer and the request's id."""
        self.client = RemoteClient(running.asked, running)
        """What the client lends: files and terminals."""
        self._client = self.client
        self._scope = {"session_id": running.asked.session_id}
        self._running = running
        self._dialect = running.updates.dialect
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
        """The session's files: the client's where it lends them, else those of this machine inside its folders."""
        from accord.agent.files import TurnFiles  # loads what reads and writes files here

        return TurnFiles(self.session, self.client)

    async def prompts(self) -> AsyncGenerator[AddedPrompt]:
        """The prompts that the user has sent since the turn began, with `Agent(second_prompt="steer")`.

        >>> async def work(turn):
        ...     async for more in turn.prompts():
        ...         await turn.say(f"You add: {more.text}")

        It takes them one by one, and ends when none waits: call it again between two steps of the work. A prompt that
        the turn does not take becomes a turn of its own.
        """
        while (added := await self._running.taken()) is not None:
            self.end_message()
            yield added

    # Speaking

    def say(self, content: str | v1.ContentBlock) -> Coroutine[Any, Any, None]:
        """Say something to the user: text, in Markdown, or any other content.

        What is said with nothing between is one message.
        """
        dialect = self._dialect
        block = (
            dialect.text(content) if isinstance(content, str) else dialect.block(content_block("turn.say()", content))
        )
        if self._speaker is not dialect.agent_chunk:
            self._begin_message(dialect.agent_chunk)
        # Not an `async def` of its own: a model's answer is thousands of these.
        return self._running.send(dialect.agent_chunk(block, self._message_id))

    async def message(self, *content: str | v1.ContentBlock) -> SentMessage:
        """Say this as a message of its own; what is returned replaces it or takes it back.

        >>> async def work(turn):
        ...     message = await turn.message("Searching ...")
        ...     await message.replace("Found 3 places.")
        """
        self.end_message()
        blocks = message_blocks("turn.message()", content)
        message = SentMessage(self._running.send, self._dialect, lambda: self._running.new_id("m"))
        await message.replace(*blocks)
        return message

    async def think(self, content: str | v1.ContentBlock) -> None:
        """Think aloud."""
        dialect = self._dialect
        block = (
            dialect.text(content) if isinstance(content, str) else dialect.block(content_block("turn.think()", content))
        )
        if self._speaker is not dialect.thought_chunk:
            self._begin_message(dialect.thought_chunk)
        await self._running.send(dialect.thought_chunk(block, self._message_id))

    async def say_as_user(self, content: str | v1.ContentBlock) -> None:
        """Say something in the user's name."""
        dialect = self._dialect
        block = dialect.block(content_block("turn.say_as_user()", content))
        if self._speaker is not dialect.user_chunk:
            self._begin_message(dialect.user_chunk)
        await self._running.send(dialect.user_chunk(block, self._message_id))

    def end_message(self) -> None:
        """What is said next is another message."""
        self._speaker = None

    async def notice(self, title: str, description: str | None = None, *, severity: str = "info") -> bool:
        """Tell the user something beside the conversation. False, and nothing sent, if the client shows no notices."""
        check_extensible_word("turn.notice(severity=...)", severity, SEVERITIES)
        if not self.client.capabilities.has("session.notices"):
            return False
        await self._running.send(v1.Notice(severity, title, description))
        return True

    async def send(self, update: v1.SessionUpdate) -> None:
        """Send an update of any kind, such as one that has no method here."""
        check_update("turn.send()", update)
        await self._running.send_given(update)

    def _begin_message(self, speaker: type[object]) -> None:
        # prompt-turn, Message IDs: the chunks of one message share an id, and the next message has another.
        self._speaker = speaker
        self._message_id = v1.MessageId(self._running.new_id("m"))

    async def _send_unchecked(self, update: v1.SessionUpdate) -> None:
        """Send an update of ours, whose values were checked when they were given."""
        await self._running.send(update)

    # Working

    async def plan(self, *steps: str | v1.PlanEntry, id: str | None = None) -> TurnPlan:  # noqa: A002
        """Show what you mean to do; what is returned marks its steps.

        A plan with an `id` stands beside the others of the session. A client that takes one plan gets the steps of all.
        """
        if id is not None:
            check_text("turn.plan(id)", id)
        plan = TurnPlan(self._send_plan, steps, id)
        await plan.send()
        return plan

    async def plan_document(self, content: str | PurePath, *, id: str | None = None) -> PlanDocument:  # noqa: A002
        """Show a plan as a document: text is Markdown, a `Path` is a file. What is returned replaces or removes it.

        A client that takes one plan gets the list items of the text as steps, or a step that names the file.
        """
        if id is not None:
            check_text("turn.plan_document(id)", id)
        plan_id = v1.PlanId(id or self._running.new_id("p"))
        document = PlanDocument(self._send_plan, plan_id, lambda path: (self.cwd / path).as_uri())
        await document.replace(content)
        return document

    async def _send_plan(self, change: PlanChange) -> None:
        await self._running.send(self._running.plans.fitted(change))

    def tool(
        self,
        title: str,
        *,
        kind: v1.ToolKind | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002
        locations: Sequence[Location] = (),
        raw_input: Json = None,
        background: bool = False,
        cancellable: bool = False,
    ) -> Tool:
        """A tool call, as a context manager.

        >>> async def work(turn):
        ...     async with turn.tool("Add up", kind="think") as tool:
        ...         await tool.text(str(2 + 2))

        With `background` it may outlive the turn, in a task of `session.start`. With `cancellable` the client may
        cancel it alone: its block then ends, `tool.is_cancelled` is true, and the turn goes on. Both are told to
        clients of version 2; those of version 1 see an ordinary tool call.
        """
        check_text("turn.tool()", title)
        tool_call_id = v1.ToolCallId(id or self._running.new_id("t"))
        session = self._running.session
        life = None
        if background or cancellable:
            life = ToolLife(session.activity, session.cancels, in_background=background, cancellable=cancellable)
        surroundings = ToolSurroundings(
            session=self._running.asked,
            client=self.session.client if background else self.client,
            asks=self._running.asked.asks if background else self._running,
            permissions=self.session.permissions,
            end_message=self.end_message,
            send=self._running.updates.send if background else self._send_unchecked,
            cancelled_status=self._dialect.cancelled_status,
            can_pause=self._dialect.can_pause,
            command=CommandParts(self.client, self._dialect, session.cancels, self._running.updates.send),
            life=life,
        )
        return Tool(surroundings, tool_call_id, title, kind=kind, name=name, locations=locations, raw_input=raw_input)

    async def ask(
        self, title: str, *options: Offered, kind: v1.ToolKind | None = None, about: str | None = None
    ) -> Decision:
        """Ask the user's permission for something that is not a tool call; see `Tool.ask`."""
        async with self.tool(title, kind=kind) as tool:
            return await tool.ask(*options, about=about)

    def subagent(
        self,
        title: str,
        prompt: str | v1.ContentBlock | None = None,
        *,
        description: str | None = None,
        cancellable: bool = False,
    ) -> Subagent[StateT]:
        """A subagent, as a context manager: a turn in a session of its own, which the user can follow.

        >>> async def work(turn):
        ...     async with turn.subagent("Look for callers", "Who calls parse()?") as subagent:
        ...         await subagent.say("Two places: ...")

        `prompt` is what it is told to do. With `cancellable`, the user may cancel it alone: its block ends, and the
        code after the block goes on. A client that shows no subagents shows a tool call with what the subagent says.
        """
        check_text("turn.subagent()", title)
        blocks = [] if prompt is None else [content_block("turn.subagent(prompt)", prompt)]
        introduction = Introduction(title, description, cancellable, blocks)
        subagent, way_out = way_out_for(self._running, lambda: self.tool(title, kind="other"))
        return Subagent(RunningSubagent(self._running, subagent, way_out), introduction, self.end_message)

    async def usage(
        self, used: int, size: int | None, cost: float | v1.Cost | None = None, currency: str = "USD"
    ) -> bool:
        """How full the model's context is, and what the session has cost so far.

        False, and nothing sent, while the size of the context is not known (None, or 0). A client that resumes the
        session is told the latest again.
        """
        # rfd-session-usage, Context Window Fields: no update rather than one without a size.
        if not size:
            return False
        price = v1.Cost(cost, currency) if isinstance(cost, float | int) else cost
        update = v1.UsageUpdate(used, size, price)
        check_sendable("turn.usage()", update)
        await self._running.send(update)
        return True

    def tokens(self, input: int, output: int, *, total: int | None = None, thought: int | None = None) -> None:  # noqa: A002
        """What the model has read and written, for the turn's answer.

        This is only proposed: the answer holds it where the agent says `unstable=True`.
        """
        self._running.spent = v1.Usage(input + output if total is None else total, input, output, thought)

    def provider(self, provider_id: str) -> Endpoint | None:
        """Where the models of this provider are reached; None while the client has it disabled.

        It stays the same for the whole turn. When the client has set another endpoint, do not send your own key there.
        """
        return endpoint_of(self._running.endpoints, provider_id, "turn.provider()")

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do this beside what the turn does. The turn ends only when it is done, and a cancel ends both."""
        if not asyncio.iscoroutine(work):
            raise wrong_type("turn.start()", "a coroutine, such as work(turn)", work)
        return self._running.start(work)


class Subagent(Turn[StateT]):
    """A subagent at work; `turn.subagent(...)` makes it.

    It is a turn: whatever works on a `Turn` works on a `Subagent`. What it says, does and asks belongs to a session of
    its own, whose id is `id`. `session` is the session of the turn that started it. An error in its block ends it, and
    goes on to the code around the block.
    """

    def __init__(self, running: RunningSubagent, introduction: Introduction, end_message: Callable[[], None]) -> None:
        super().__init__(running, v1.PromptRequest(running.id, list(introduction.prompt)))
        self.id: v1.SessionId = running.id
        """The id of its session; a client that shows no subagents does not know it."""
        self.title = introduction.title
        """What the user reads; `retitle` changes it."""
        self._subagent = running
        self._introduction = introduction
        self._end_message_around = end_message

    def __repr__(self) -> str:
        return f"Subagent({self.title!r}, id={self.id!r})"

    @property
    def was_cancelled(self) -> bool:
        """Whether the user has cancelled it alone; the code after its block can tell by this."""
        return self._subagent.is_stopped

    async def retitle(self, title: str) -> None:
        """Say better what it does."""
        check_text("subagent.retitle()", title)
        self.title = title
        await self._subagent.retitle(title)

    async def instruct(self, content: str | v1.ContentBlock) -> None:
        """Show a message from the session that started it: more for it to do."""
        await self._message("subagent.instruct()", content, to_subagent=True)

    async def report(self, content: str | v1.ContentBlock) -> None:
        """Show a message to the session that started it: what it has found."""
        await self._message("subagent.report()", content, to_subagent=False)

    async def _message(self, call: str, content: str | v1.ContentBlock, *, to_subagent: bool) -> None:
        block = content_block(call, content)
        self.end_message()
        self._end_message_around()
        await self._subagent.message([block], to_subagent=to_subagent)

    async def __aenter__(self) -> Self:
        self._end_message_around()
        await self._subagent.begin(self._introduction)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return await self._subagent.leave(kind, error, trace)
