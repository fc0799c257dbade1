"""What a real agent is taken through with our client, and what came of each part of it."""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import accord
from interop.model.replies import CONTENT, SENTENCE
from interop.model.server import ModelServer
from interop.real_agents import RealAgent, command, environment, repository

PARTS = ("initialize", "new", "text", "permission", "edit", "cancel", "load", "resume", "end")
PARTS_OF_VERSION_2 = ("version", "held")
TURN_SECONDS = 90.0
GONE_SECONDS = 10.0
MARK = "ACCORD_INTEROP"
PASSED, NOT_OFFERED = "passed", "not offered"


async def converse(agent: RealAgent, model: ModelServer, folder: Path, version: int = 1) -> dict[str, str]:
    """Take an agent through the whole conversation, in this empty folder, where the traces stay."""
    home, work = folder / "home", repository(folder / "work")
    home.mkdir()
    mark = uuid.uuid4().hex
    variables = {**environment(agent, model.url, home), MARK: mark}
    talk = Conversation(command(agent, home), agent, work, variables, version)
    await talk.first_run()
    if talk.session_id:
        await talk.second_run()
        await talk.third_run()
    talk.parts["end"] = await nothing_left(mark)
    return {part: talk.parts.get(part, "not reached") for part in parts_of(version)}


def parts_of(version: int) -> tuple[str, ...]:
    """The parts of a conversation in this version of the protocol."""
    return PARTS if version == 1 else (*PARTS, *PARTS_OF_VERSION_2)


class Conversation:
    """Three runs of one agent: everything that a turn can hold, then what is still there after a restart."""

    def __init__(
        self, command: list[str], agent: RealAgent, work: Path, variables: Mapping[str, str], version: int
    ) -> None:
        self.command = command
        self.agent = agent
        self.work = work
        self.variables = variables
        self.version = version
        self.parts: dict[str, str] = {}
        self.asked: list[str] = []
        self.session_id = ""
        self.runs = 0
        self.begun = 0
        """The minute in which the session was there."""

    @asynccontextmanager
    async def part(self, name: str) -> AsyncGenerator[None]:
        """One part of the conversation: what goes wrong in it is written down, and the others go on."""
        try:
            async with asyncio.timeout(TURN_SECONDS):
                yield
        except NotOffered:
            self.parts[name] = NOT_OFFERED
        except (accord.AccordError, AssertionError, TimeoutError) as error:
            self.parts[name] = f"{type(error).__name__}: {error}"[:500]
        else:
            self.parts[name] = PASSED

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[accord.RemoteAgent]:
        def ask(question: accord.PermissionQuestion) -> bool:
            self.asked.append(question.tool_call.title or "")
            return True

        client = accord.Client("accord-interop", files=self.agent.files_lent, terminals=True, permissions=ask)
        async with accord.connect(
            self.command,
            client,
            cwd=self.work,
            env=self.variables,
            inherit=False,
            timeout=TURN_SECONDS,
            versions=(self.version,),
            trace=self.work.parent / f"trace{self.runs}.jsonl",
        ) as remote:
            self.runs += 1
            if self.agent.login:
                await remote.login(self.agent.login)
            yield remote

    async def first_run(self) -> None:
        async with self.part("initialize"), self.connect() as remote, self.part("new"):
            session = await remote.new_session(self.work)
            self.session_id, self.begun = session.id, minute()
            if self.version == 2:
                self.parts["version"] = PASSED if remote.version == 2 else f"the agent speaks version {remote.version}"
            if self.agent.mode:
                await session.set_mode(self.agent.mode)
            turns = [self.text, self.edit, self.permission, self.cancel]
            for turn in turns if self.version == 1 else [*turns, self.held]:
                async with self.part(turn.__name__):
                    await turn(session)

    async def text(self, session: accord.RemoteSession) -> None:
        outcome = await session.prompt("Say hello.")
        assert outcome.stop_reason == "end_turn", outcome
        assert SENTENCE in outcome.text, outcome.text

    async def edit(self, session: accord.RemoteSession) -> None:
        path = self.work / "made.txt"
        outcome = await session.prompt(f"EDIT {path}")
        assert outcome.stop_reason == "end_turn", outcome
        assert path.exists(), f"nothing was written: {outcome}"
        assert path.read_text().strip() == CONTENT.strip(), path.read_text()
        assert outcome.tool_calls, "no tool call was reported"

    async def permission(self, _: accord.RemoteSession) -> None:
        assert self.asked, "it wrote without asking"

    async def cancel(self, session: accord.RemoteSession) -> None:
        reply = session.prompt("STREAM")
        async for text in reply.iter_text():
            if "tick" in text:
                break
        outcome = await reply.cancel()
        assert outcome.stop_reason == "cancelled", outcome.stop_reason

    async def held(self, session: accord.RemoteSession) -> None:
        """A prompt that comes while the agent works waits, or becomes part of that work."""
        first, second = session.prompt("Say hello."), session.prompt("Say hello once more.")
        for reply in (first, second):
            outcome = await reply
            assert outcome.stop_reason == "end_turn", outcome
            assert SENTENCE in outcome.text, outcome.text
        await session.idle()
        said = [message.text for message in session.state.messages if message.speaker == "user"]
        assert said[-2:] == ["Say hello.", "Say hello once more."], said

    async def second_run(self) -> None:
        if self.agent.loads_in_another_minute and minute() == self.begun:
            await asyncio.sleep((self.begun + 1) * 60 - time.time())
        async with self.part("load"), self.connect() as remote:
            offered(remote, "load_session")
            session = await remote.load(self.session_id, self.work)
            await replayed(session)
            await self.goes_on(session)

    async def third_run(self) -> None:
        async with self.part("resume"), self.connect() as remote:
            offered(remote, "session_capabilities.resume")
            await self.goes_on(await remote.resume(self.session_id, self.work))

    async def goes_on(self, session: accord.RemoteSession) -> None:
        outcome = await session.prompt("Say hello again.")
        assert SENTENCE in outcome.text, outcome.text


def minute() -> int:
    return int(time.time() // 60)


class NotOffered(Exception):
    """The agent does not declare this."""


def offered(remote: accord.RemoteAgent, capability: str) -> None:
    if not remote.capabilities.has(capability):
        raise NotOffered(capability)


async def replayed(session: accord.RemoteSession) -> None:
    """Wait until the session's past is there: some agents answer before they have sent all of it."""
    changed = asyncio.Event()
    end = session.on_change(lambda _: changed.set())
    try:
        while not any(SENTENCE in message.text for message in session.state.messages):
            await changed.wait()
            changed.clear()
    finally:
        end()


async def nothing_left(mark: str) -> str:
    """Whether every process that the agent's variables went to has ended."""
    if sys.platform != "linux":
        return "not looked at"
    wanted = f"{MARK}={mark}".encode()
    left: list[str] = []
    for _ in range(int(GONE_SECONDS * 10)):
        left = [name for name in processes() if wanted in environment_of(name)]
        if not left:
            return PASSED
        await asyncio.sleep(0.1)
    return f"still running: {[command_of(name) for name in left]}"


def processes() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]


def environment_of(pid: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def command_of(pid: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")[:100]
    return pid


async def main(names: list[str]) -> None:
    import tempfile

    from interop.real_agents import AGENTS

    for name in names or list(AGENTS):
        with ModelServer() as model:
            folder = Path(tempfile.mkdtemp(prefix=name))
            parts = await converse(AGENTS[name], model, folder)
            print(name, folder, parts, *model.notes, sep="\n   ", flush=True)


if __name__ == "__main__":
    accord.run(main(sys.argv[1:]))
