"""One conversation: its messages are answered one after the other, in one session of the agent.

While an answer is under way, its author may say `stop`. When the agent asks for permission, the question is put into
the chat, and the author of the message that it works on answers it with `yes` or `no`.
"""

import asyncio
import shlex
from collections import deque

from growing import GrowingMessage
from inbox import Inbox
from room import Message, Room, RoomError

import accord

YES, NO, STOP = {"yes", "y"}, {"no", "n"}, {"stop"}
PATIENCE = 15 * 60.0
"""Seconds that a question waits for its answer; then it is a no."""
SHOWN = 1_500
"""Characters of a command or a change that a question shows."""


class Conversation:
    """A conversation of the chat while it is worked on."""

    def __init__(self, key: str, room: Room, inbox: Inbox, pause: float) -> None:
        self.waiting: deque[Message] = deque()
        self.session: accord.RemoteSession | None = None
        self._key = key
        self._room = room
        self._inbox = inbox
        self._pause = pause
        self._reply: accord.Reply | None = None
        self._answered: Message | None = None
        self._growing: GrowingMessage | None = None
        self._question: asyncio.Future[bool] | None = None
        self._asking = asyncio.Lock()
        self._is_closed = False

    def takes_at_once(self, message: Message) -> bool:
        """Whether the message answers an open question or stops an answer, so that it does not wait its turn."""
        word = message.text.strip().lower().rstrip(".!")
        if self._answered is None or message.author != self._answered.author:
            return False
        if self._question is not None and not self._question.done() and word in YES | NO | STOP:
            self._question.set_result(word in YES)
        if self._reply is not None and word in STOP:
            self._reply.request_cancel()
            return True
        return self._question is not None and word in YES | NO

    def no_more_answers(self) -> None:
        """The chat has ended: what is asked now or later is refused."""
        self._is_closed = True
        if self._question is not None and not self._question.done():
            self._question.set_result(False)

    async def answer(self, remote: accord.RemoteAgent, folder: str, message: Message) -> None:
        """Answer one message, and edit the answer while it grows."""
        self._inbox.begin(message)
        try:
            async with GrowingMessage(self._room, self._key, self._pause) as growing:
                self._answered, self._growing = message, growing
                try:
                    await self._stream(await self._opened(remote, folder), message, growing)
                except accord.AccordError as error:
                    growing.add(f"\n(I could not answer this: {error})")
        except RoomError as error:
            print(f"the answer in {self._key} is incomplete: {error}", flush=True)
        finally:
            self._answered = self._growing = self._reply = None
        self._inbox.done(message)

    async def _stream(self, session: accord.RemoteSession, message: Message, growing: GrowingMessage) -> None:
        async with session.prompt(message.text) as reply:
            self._reply = reply
            async for text in reply.iter_text():
                growing.add(text)
            outcome = await reply
        if outcome.stop_reason != "end_turn":
            growing.add(f"\n({outcome.stop_reason.replace('_', ' ')})")
        elif not outcome.text:
            growing.add("(done)")

    async def _opened(self, remote: accord.RemoteAgent, folder: str) -> accord.RemoteSession:
        """The conversation's session: the open one, the one from before the bot's restart, or a new one."""
        if self.session is not None and self.session.is_open:
            return self.session
        known, offers = self._inbox.session_of(self._key), remote.capabilities.sessions
        try:
            if known is not None and offers.resume:
                self.session = await remote.resume(known, folder)
            elif known is not None and offers.load:
                self.session = await remote.load(known, folder)
            else:
                self.session = await remote.new_session(folder)
        except accord.PeerError as error:
            if known is None:
                raise
            await self._room.post(self._key, f"(The agent cannot go on with our session, and begins another: {error})")
            self.session = await remote.new_session(folder)
        self._inbox.keep_session(self._key, self.session.id)
        return self.session

    async def ask(self, question: accord.PermissionQuestion) -> bool:
        """Put a question of the agent into the chat, and wait for yes or no."""
        async with self._asking:  # tools may ask at the same time: one question after the other
            if self._is_closed:
                return False
            if self._growing is not None:
                await self._growing.cut()
            self._question = asyncio.get_running_loop().create_future()
            try:
                await self._room.post(self._key, shown(question))
                return await asyncio.wait_for(self._question, PATIENCE)
            except TimeoutError:
                await self._room.post(self._key, "(No answer: I take that as a no.)")
                return False
            finally:
                self._question = None


def shown(question: accord.PermissionQuestion) -> str:
    """A question with what it is about: the command, or the change."""
    lines = [f"May I? {question.title}"]
    if question.command is not None:
        command = question.command
        lines.append(command if isinstance(command, str) else shlex.join(command))
    lines += [diff.unified() for diff in question.tool_call.diffs]
    text = "\n".join(lines)
    return f"{text[:SHOWN]}{' ...' if len(text) > SHOWN else ''}\nAnswer yes or no."
