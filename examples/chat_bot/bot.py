"""A bot that lets people work with an agent in a chat: each conversation is a session, answers stream back in edits.

python bot.py --folder ~/project -- gemini --acp             a chat at this terminal
python bot.py --slack --folder ~/project -- gemini --acp     Slack: see README.md
"""

import argparse
import asyncio
import logging

from inbox import Inbox
from room import Message, Room
from slack_room import SlackRoom
from terminal_room import TerminalRoom

import accord
from conversation import Conversation

AT_ONCE = 4
"""Conversations that are answered at the same time."""


class Bot:
    """Joins a room, the queue and an agent."""

    def __init__(self, room: Room, inbox: Inbox, folder: str, *, people: list[str], pause: float) -> None:
        self._room = room
        self._inbox = inbox
        self._folder = folder
        self._people = people
        self._pause = pause
        self._conversations: dict[str, Conversation] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._busy: set[str] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def run(self, command: list[str]) -> None:
        """Answer messages until the chat ends, and then those that still wait."""
        client = accord.Client(files=True, terminals=True, permissions=self.ask)
        async with accord.connect(command, client, restart=True) as remote:
            self._remote = remote
            await self._go_on_after_a_restart()
            await self._room.run(self.receive)
            for conversation in self._conversations.values():
                conversation.no_more_answers()
            while self._working:
                await asyncio.wait(self._working)

    async def _go_on_after_a_restart(self) -> None:
        for message in self._inbox.interrupted():
            # The agent may have done a part of it: only its author can say whether to do it again.
            await self._room.post(message.conversation, f"(I was interrupted at this; ask again: {message.text})")
            self._inbox.done(message)
        for message in self._inbox.waiting():
            self._queue(message)

    def receive(self, message: Message) -> None:
        """Take a message from the chat: it is stored when this returns."""
        if (self._people and message.author not in self._people) or not self._inbox.put(message):
            return
        conversation = self._conversations.get(message.conversation)
        if conversation is not None and conversation.takes_at_once(message):
            self._inbox.done(message)
        else:
            self._queue(message)

    def _queue(self, message: Message) -> None:
        key = message.conversation
        if key not in self._conversations:
            self._conversations[key] = Conversation(key, self._room, self._inbox, self._pause)
        self._conversations[key].waiting.append(message)
        if key not in self._busy:
            self._busy.add(key)
            task = asyncio.create_task(self._work(key))
            self._working.add(task)
            task.add_done_callback(self._working.discard)

    async def _work(self, key: str) -> None:
        conversation = self._conversations[key]
        try:
            while conversation.waiting:
                async with self._slots:
                    await conversation.answer(self._remote, self._folder, conversation.waiting.popleft())
        finally:
            self._busy.discard(key)

    async def ask(self, question: accord.PermissionQuestion) -> bool:
        """Let the conversation of this session answer."""
        for conversation in self._conversations.values():
            if conversation.session is not None and conversation.session.id == question.session.id:
                return await conversation.ask(question)
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slack", action="store_true", help="work in Slack instead of at this terminal")
    parser.add_argument("--folder", default=".", help="the folder that the agent works in")
    parser.add_argument("--store", default="chat-bot.sqlite3", help="the file for the queue and the sessions")
    parser.add_argument("--people", nargs="+", default=[], help="who may use the bot (default: everyone in the chat)")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two edits of an answer")
    parser.add_argument("agent", nargs="+", help="the agent's command, after --")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    room = SlackRoom.from_environment() if given.slack else TerminalRoom()
    bot = Bot(room, Inbox(given.store), given.folder, people=given.people, pause=given.pause)
    accord.run(bot.run(given.agent))


if __name__ == "__main__":
    main()
