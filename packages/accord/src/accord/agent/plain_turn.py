"""The objects for plain functions of an agent: the turn, its tool calls, the session and so on, without `async`.

    @agent.on_prompt
    def reply(turn: accord.sync.Turn) -> None:
        with turn.tool("Add up", kind="think") as tool:
            tool.text(str(2 + 2))
        turn.say("Done.")

Each has an `AuthorThread` by which it reaches the event loop, and the members of the `async` class of the same name:
see `plain_face`, and the stub beside this module.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from accord._internal import Consent
from accord.agent import (
    authentication,
    plan,
    remote_client,
    session,
    session_config,
    session_mcp,
    subagent,
    tool,
    turn,
    user_questions,
    workspace,
)
from accord.agent.author_thread import read_in_threads, resources_of, started
from accord.agent.plain_face import Face
from accord.agent.session import StateT
from accord.mcp import mcp_server

if TYPE_CHECKING:
    from accord.agent.model_answer import ModelAnswer, ModelStream

T = TypeVar("T")


class Task(Face, Generic[T]):
    """A function that runs in another thread; `turn.start(...)` and `session.start(...)` make it."""

    def result(self) -> T:
        """Wait until it has ended; returns what it returned, or raises its error."""
        return self._portal.wait(lambda: self._held)

    def cancel(self) -> None:
        """Raise `asyncio.CancelledError` in the function, at its next use of its turn or session."""
        self._portal.read(self._held.cancel)

    def done(self) -> bool:
        """Whether it has ended."""
        return self._held.done()


class ElicitedUrl(Consent, Face, of=user_questions.ElicitedUrl, attributes="action id meta"):
    def _agreed(self) -> bool:
        return self._held.accepted


class Elicits(Face, of=user_questions.Elicits): ...


class SentMessage(Face, of=turn.SentMessage, attributes="id"): ...


class TurnPlan(Face, of=plan.TurnPlan, attributes="id entries"): ...


class PlanDocument(Face, of=plan.PlanDocument, attributes="id"): ...


class RemoteTerminal(Face, of=remote_client.RemoteTerminal, attributes="is_released"): ...


class ClientLink(Face, of=remote_client.ClientLink): ...


class RemoteClient(ClientLink, of=remote_client.RemoteClient): ...


class TurnFiles(Face, of=workspace.TurnFiles): ...


class ToolCommand(Face, of=tool.ToolCommand, attributes="command"): ...


class Tool(Elicits, of=tool.Tool, attributes="id title kind status"): ...


class RunningCompaction(Face, of=session.RunningCompaction, attributes="id is_shown status"): ...


class Commands(Face, of=session_config.Commands, attributes="skills"): ...


class Config(Face, of=session_config.Config): ...


class Choice(Face, of=session_config.Choice): ...


class Modes(Choice, of=session_config.Modes): ...


class Models(Choice, of=session_config.Models): ...


class McpServers(
    Face,
    of=mcp_server.McpServers,
    without="close run",  # its session closes it; `call` shows what is run
): ...


class SessionServers(McpServers, of=session_mcp.SessionServers): ...


class Login(Elicits, of=authentication.Login, attributes="method_id", without="context"): ...


class Session(
    Face,
    Generic[StateT],
    of=session.Session,
    attributes="id cwd roots mcp_servers meta answer_meta system_prompt client config commands permissions",
    without="fold tool_call",  # for the low level, and for services
):
    @property
    def state(self) -> StateT:
        """Any value that you want to keep for this session: while it is open, or with `Agent(state=...)` in the
        store.
        """
        return self._held.state

    @state.setter
    def state(self, value: StateT) -> None:
        self._held.state = value

    @property
    def resources(self) -> ExitStack:
        """Closed when the session is, in a thread: `session.resources.enter_context(...)`."""
        return resources_of(self._portal, self._held)

    def start(self, function: Callable[..., T], *arguments: Any) -> Task[T]:
        """Call this function in another thread beside the turns, until it is done or the session is closed.

        A tool call of its own needs `turn.tool(..., background=True)`; to speak, begin work with `session.work`.
        """
        work = started(function, arguments)
        return Task(self._portal, self._portal.read(lambda: self._held.start(work())))


class Turn(
    Elicits,
    Generic[StateT],
    of=turn.Turn,
    attributes="session prompt command arguments meta answer_meta client",
    without="context",  # the low level has coroutines everywhere
):
    def stream_answer(self, stream: ModelStream, *, context: int | None = None) -> ModelAnswer:
        """Say a model's answer as it streams, and return the whole answer, with its tool calls.

        `stream` has the events of OpenAI's chat completions, OpenAI's responses or Anthropic's messages: objects of
        their packages, dicts, or lines of server-sent events. It is read in threads, and closed at the end.
        """
        return self._portal.wait(lambda: self._held.stream_answer(read_in_threads(stream), context=context))

    def start(self, function: Callable[..., T], *arguments: Any) -> Task[T]:
        """Call this function in another thread beside the turn.

        The turn ends only when it is done, and a cancel ends both.
        """
        work = started(function, arguments)
        return Task(self._portal, self._portal.read(lambda: self._held.start(work())))


class Subagent(Turn[StateT], of=subagent.Subagent, attributes="id title"): ...
