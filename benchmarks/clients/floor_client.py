"""The floor's client; `benchmarks/floor.py` says what the floor is."""

import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

# The scripts run by path, in interpreters that know nothing of this package.
sys.path.insert(1, f"{sys.path[0]}/../..")
from benchmarks.contract import FILE_TEXT
from benchmarks.drive import Refused, Turn, main
from benchmarks.floor import Message, Params, Pipe, Text


class FloorLink:
    def __init__(self, pid: int, read_fd: int, write_fd: int) -> None:
        self.pipe = Pipe(self._called, read_fd, write_fd)
        self.seen = 0
        self.pid = pid

    def _called(self, message: Message) -> None:
        if message.id is None:
            self.seen += 1
        elif message.method == "fs/read_text_file":
            self.pipe.write(Message("2.0", message.id, result={"content": FILE_TEXT}))
        else:
            options = (message.params and message.params.options) or []
            chosen = next(option["optionId"] for option in options if option["kind"] == "allow_once")
            outcome = {"outcome": "selected", "optionId": chosen}
            self.pipe.write(Message("2.0", message.id, result={"outcome": outcome}))

    async def initialize(self) -> None:
        capabilities = {"fs": {"readTextFile": True, "writeTextFile": False}}
        await self.pipe.ask("initialize", Params(protocol_version=1, client_capabilities=capabilities))

    async def open(self) -> str:
        answer = await self.pipe.ask("session/new", Params(cwd=str(Path.cwd()), mcp_servers=[]))
        return (answer.result or {})["sessionId"]

    async def prompt(self, session: str, text: str) -> Turn:
        answer = await self.pipe.ask("session/prompt", Params(session, prompt=[Text(text)]))
        if answer.error:
            raise Refused(answer.error.code, answer.error.message)
        result = answer.result or {}
        return Turn(result["stopReason"], result.get("_meta"))

    async def cancel(self, session: str) -> None:
        self.pipe.write(Message("2.0", None, "session/cancel", Params(session)))


@asynccontextmanager
async def connect(agent: Sequence[str]) -> AsyncGenerator[FloorLink]:
    with subprocess.Popen(agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:  # noqa: ASYNC220
        assert process.stdin is not None
        assert process.stdout is not None
        link = FloorLink(process.pid, process.stdout.fileno(), process.stdin.fileno())
        await link.initialize()
        yield link
        process.stdin.close()
        await link.pipe.ended.wait()


if __name__ == "__main__":
    sys.exit(main(connect))
