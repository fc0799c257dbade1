"""Writes a session in both versions and is killed at a step of its store's work: `mortal_recorder.py FILE STEP`.

Each frame goes to standard output as soon as the record gives it, as it would to a client. A step is a statement that
is about to run in the database. Step 0 never comes.
"""

import asyncio
import os
import signal
import sys
from itertools import count

from accord import SqliteStore, v1
from accord.agent.record import Record
from accord.schema import v2
from accord.store import StoredSession


class MortalStore(SqliteStore):
    """Dies before the given statement, the first of which runs once the file is open."""

    async def open(self):
        await super().open()
        steps = count(1)

        def step(_):
            if next(steps) == last:
                os.kill(os.getpid(), signal.SIGKILL)

        for connection in (self._open.quick, self._open.patient):
            connection.set_trace_callback(step)


def of_version_2(record):
    message, tool = v2.MessageId(record.id_for("m")), v2.ToolCallId(record.id_for("t"))
    terminal = v2.TerminalId(record.id_for("x"))
    yield v2.AgentMessageChunk.of("on", message)
    yield v2.AgentMessageChunk.of("ce", message)
    yield v2.ToolCallProgress(tool, "Run", "execute", "in_progress", [v2.Terminal(terminal)])
    yield v2.TerminalUpdate(terminal, "make")
    yield v2.TerminalOutputChunk.of(terminal, b"built\n")
    yield v2.TerminalUpdate(terminal, exit_status=v2.TerminalExitStatus(0))
    yield v2.ToolCallContentChunk(tool, v2.Content.of("done"))
    yield v2.ToolCallProgress(tool, status="completed")
    yield v2.AgentMessage.of(message, "once", " more")
    yield v2.SessionStateUpdate("idle", "end_turn")


def of_version_1(record):
    message, tool = v1.MessageId(record.id_for("m")), v1.ToolCallId(record.id_for("t"))
    yield v1.AgentMessageChunk.of("ag", message)
    yield v1.ToolCall(tool, "Look", status="in_progress")
    yield v1.AgentMessageChunk.of("ain", message)
    yield v1.ToolCallProgress(tool, status="completed")


def show(frame):
    if frame is not None:
        print(frame.decode(), flush=True)


async def main():
    async with MortalStore(file) as store:
        if await store.find("s") is None:
            await store.create(StoredSession(id="s", cwd="/project"))
        for version, updates in ((2, of_version_2), (1, of_version_1), (2, of_version_2)):
            record = Record(store, await store.take("s"), version)
            show(record.frame((await record.keep_prompt([v1.TextContent("go")], "A title"))[-1]))
            for update in updates(record):
                show(record.keep_now(update) or await record.keep(update))


file, last = sys.argv[1], int(sys.argv[2])
asyncio.run(main())
