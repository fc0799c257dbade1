"""The objects of a client for threads: each is a `Face`, with the members of the class with `async` of the same name.

The stub beside this module shows the members; `tools/sync_faces.py` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accord.agent.plain_face import Face
from accord.client import remote_agent, remote_session, remote_subagent, reply, suggested_edits
from accord.client.reply import Outcome
from accord.session import state, updates
from accord.sync.portal import Portal


class ClientFace(Face):
    """A face that stays the same one for the same object, as long as it is used."""

    @classmethod
    def _for(cls, held: Any, portal: Any, session: str | None = None) -> Any:
        if not isinstance(portal, Portal):
            return held  # a plain function of an agent gets the state of `session.history()` as it is
        with portal.making:
            return portal.faces.setdefault(id(held), cls(portal, held, session))


class SessionState(
    ClientFace,
    of=state.SessionState,
    changing="plan plan_id plans commands modes mode models model config unknown_config usage title meta updated_at "
    "notices compactions subagents session_messages cursors suggestions history_length activity background last_end "
    "terminals unknown",
    without="add add_all add_prompt end_turn cancel_unfinished set_modes set_config set_mode clear add_prompt_copy "
    "name_prompt drop_prompt refuse show_latest_plan forget drain",  # what fills a state is for its connection
): ...


class Reply(ClientFace, of=reply.Reply):
    """What comes back for one prompt: iterate it for the updates, `outcome()` waits for the `Outcome`.

        reply = session.prompt("What is in here?")
        for text in reply.iter_text():
            print(text, end="")
        print(reply.outcome().stop_reason)

    Ctrl-C in a thread that waits for the Reply cancels the turn, and so does leaving a block of
    `with session.prompt(...) as reply`. If several threads read one Reply, each update goes to one of them.
    """

    @property
    def inserted(self) -> str | None:
        """The id of the prompt's message; waits until the prompt has its place in the conversation.

        None if the prompt was cancelled before, and from agents of version 1, which do not tell it.
        """
        return self._portal.wait(lambda: self._held.inserted, self._session)

    def __next__(self) -> updates.Update:
        try:
            return self._portal.wait(self._held.__anext__, self._session)
        except StopAsyncIteration:
            raise StopIteration from None

    def with_subagents(self) -> Iterator[tuple[RemoteSubagent | None, updates.Update]]:
        """Iterate over the updates of the turn and its subagents, each with its subagent, None for the turn's own.

        The prompt must be sent with `subagents=True`.
        """
        for subagent, update in self._portal.iterate(self._held.with_subagents, self._session):
            yield self._faced(subagent), update

    @property
    def text(self) -> str:
        """All that the agent says in the turn; waits for its end, and raises the error that it failed with."""
        return self.outcome().text

    def outcome(self) -> Outcome:
        """Wait for the end of the turn; raises the error that it failed with."""
        return self._portal.wait(lambda: self._held, self._session)


class _SessionFace(ClientFace):
    """A face of a session: a thread that waits here answers its questions."""

    def __init__(self, portal: Portal, held: Any, _: str | None = None) -> None:
        super().__init__(portal, held, held.id)


class RemoteSubagent(
    _SessionFace,
    of=remote_subagent.RemoteSubagent,
    attributes="id parent_id state agent program cwd roots",
    without="fold",
): ...


class RemoteSession(_SessionFace, of=remote_session.RemoteSession, attributes="id cwd roots state", without="fold"):
    """One conversation with an agent; `RemoteAgent.new_session`, `load` and `resume` return it.

        session = remote.new_session("/home/me/project")
        outcome = session.prompt("Summarise the README").outcome()
        print(session.state.title, outcome.text)

    When a dead agent is restarted and the session resumed, it is still the same object.
    """


class Suggestion(ClientFace, of=suggested_edits.Suggestion, attributes="value"): ...


class OpenDocument(ClientFace, of=suggested_edits.OpenDocument, attributes="uri language"): ...


class Suggestions(ClientFace, of=suggested_edits.Suggestions):
    """A suggestion session with an agent, for `with`; `RemoteAgent.suggestions` makes it.

    with remote.suggestions("/home/me/project") as suggestions:
        document = suggestions.open("a.py", "prin")
        for suggestion in document.suggest(at=4):
            print(suggestion.new_text)
    """


class RemoteAgent(
    ClientFace,
    of=remote_agent.RemoteAgent,
    attributes="version",
    without="peer",  # coroutines everywhere; `request`, `notify` and `on` reach the low level
):
    """An agent on the other end of a connection; `accord.sync.connect` gives it.

    with accord.sync.connect(["gemini", "--acp"]) as remote:
        session = remote.new_session("/home/me/project")
        print(session.prompt("What is in here?").text)
    """

    def close(self) -> None:
        """End the connection, the agent's process if it has one, and the thread; does nothing the second time."""
        self._portal.close()
