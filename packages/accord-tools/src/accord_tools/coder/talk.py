"""A turn: the model is asked, uses tools, and is asked again, until it has nothing more to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

from accord import RequestError, Turn, v1
from accord_tools.coder.compaction import compact, is_full
from accord_tools.coder.conversation import Conversation, Part, Text
from accord_tools.coder.instructions import instructions
from accord_tools.coder.models.choosing import ModelSettings, context_of
from accord_tools.coder.models.failures import ModelError
from accord_tools.coder.models.model import Considered, Finished, Model, Question, Spoken, Usage
from accord_tools.coder.modes import Mode, mode_of
from accord_tools.coder.prompts import parts_of
from accord_tools.coder.toolbox.definition import ToolDefinition
from accord_tools.coder.toolbox.delegating import delegating
from accord_tools.coder.toolbox.toolset import ToolSet

MOST_ROUNDS = 200
"""How often the model is asked in one turn."""

CANCELLED = "The user cancelled this."

EFFORT = "effort"
"""The option with which the user chooses how long the model thinks."""

DEFAULT_EFFORT = "default"

LOST = "The agent ended while this ran; it may have been done or not."


class Talk:
    """The conversation of one turn with the model."""

    def __init__(
        self,
        turn: Turn[Conversation],
        model: Model,
        settings: ModelSettings,
        name: str,
        hidden: Callable[[str], str] = str,
    ) -> None:
        self._turn = turn
        self._model = model
        self._settings = settings
        self._name = name
        self._hidden = hidden
        """Masks secrets in a text for the user."""
        self._total = Usage()

    @property
    def _mode(self) -> Mode:
        return mode_of(self._turn.session.modes.current)

    async def answer(self, prompt: Sequence[v1.ContentBlock]) -> str | None:
        """Answer the prompt; returns why it stopped, if not because all is done."""
        conversation = self._turn.session.state
        conversation.close_calls(LOST)  # of a turn that a crash has ended
        conversation.add("user", *parts_of(prompt))
        try:
            return await self._rounds(self._turn, conversation, delegate=True)
        except asyncio.CancelledError:
            conversation.close_calls(CANCELLED)
            raise
        except ModelError as error:
            raise told(error, self._hidden) from error
        finally:
            self._turn.tokens(self._total.input, self._total.output, thought=self._total.thought)

    async def _rounds(self, turn: Turn[Conversation], conversation: Conversation, *, delegate: bool) -> str | None:
        for _ in range(MOST_ROUNDS):
            if delegate:
                await self._take_more(conversation)
            if is_full(conversation, self._context):
                await compact(turn.session, self._model, self._name, conversation)
            tools = await self._tools(turn, delegate=delegate)
            finished = await self._ask(turn, conversation, tools)
            conversation.add("assistant", *finished.parts)
            if finished.stop == "refusal":
                return "refusal"
            calls = conversation.messages[-1].calls if finished.stop == "calls" else []
            if delegate:
                await turn.session.save()  # a crash loses no more than the round that runs
            for call in calls:
                conversation.add("user", await tools.use(call))
                if delegate:
                    await turn.session.save()
            if not calls and not (delegate and await self._take_more(conversation)):
                return "max_tokens" if finished.stop == "length" else None
        return "max_turn_requests"

    @property
    def _context(self) -> int:
        return context_of(self._settings, self._name)

    async def _take_more(self, conversation: Conversation) -> bool:
        """Take the prompts that the user has sent meanwhile."""
        taken = False
        async for more in self._turn.prompts():
            conversation.add("user", *parts_of(more.prompt))
            taken = True
        return taken

    async def _tools(self, turn: Turn[Conversation], *, delegate: bool) -> ToolSet:
        more: Sequence[ToolDefinition] = [delegating(self._delegated)] if delegate else []
        mcp = await turn.session.mcp.tools() if turn.session.mcp_servers else []
        return ToolSet(turn, self._mode, more, mcp)

    async def _delegated(self, subagent: Turn[Conversation], task: str) -> str:
        """Do a task as a subagent, in a conversation of its own; returns its last words."""
        conversation = Conversation()
        conversation.add("user", Text(task))
        await self._rounds(subagent, conversation, delegate=False)
        return conversation.messages[-1].text

    async def _ask(self, turn: Turn[Conversation], conversation: Conversation, tools: ToolSet) -> Finished:
        """One answer of the model, told as it streams."""
        question = Question(
            model=self._name,
            system=await instructions(turn.session, self._mode),
            messages=conversation.messages,
            tools=tools.specs,
            effort=_effort(turn),
        )
        said: list[Part] = []
        try:
            async with aclosing(self._model.answer(question)) as events:
                async for event in events:
                    match event:
                        case Spoken(text):
                            said.append(Text(text))
                            await turn.say(text)
                        case Considered(text):
                            await turn.think(text)
                        case Finished():
                            await self._count(turn, conversation, event.usage)
                            return event
        except asyncio.CancelledError:
            conversation.add("assistant", Text("".join(part.text for part in said if isinstance(part, Text)) or "..."))
            raise
        raise RequestError.internal("the model gave no answer")

    async def _count(self, turn: Turn[Conversation], conversation: Conversation, usage: Usage) -> None:
        total = self._total
        thought = (total.thought or 0) + usage.thought if usage.thought is not None else total.thought
        self._total = Usage(total.input + usage.input, total.output + usage.output, thought)
        conversation.used = usage.input + usage.output
        conversation.read += usage.input
        conversation.written += usage.output
        cost = None
        if self._settings.price is not None:
            read, written = self._settings.price
            conversation.cost += (usage.input * read + usage.output * written) / 1_000_000
            cost = conversation.cost
        await turn.usage(conversation.used, self._context, cost)


def _effort(turn: Turn[Conversation]) -> str | None:
    chosen = turn.session.config[EFFORT]
    return chosen if isinstance(chosen, str) and chosen != DEFAULT_EFFORT else None


def told(error: ModelError, hidden: Callable[[str], str]) -> RequestError:
    """What the client reads of an error of the model; `hidden` masks secrets in it."""
    return RequestError.internal(hidden(str(error)), reason=error.trouble)
