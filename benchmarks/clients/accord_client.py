"""Our own client, written as the documentation of the low level writes one."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from accord import Handlers, Peer, PeerError, ProcessTransport, v1

# The scripts run by path, in interpreters that know nothing of this package.
sys.path.insert(1, f"{sys.path[0]}/../..")
from benchmarks.contract import FILE_TEXT
from benchmarks.drive import Refused, Turn, main


class AccordLink:
    peer: Peer

    def __init__(self) -> None:
        self.seen = 0
        self.pid = 0
        self.handlers = Handlers()
        self.handlers.on(v1.SessionNotification)(self.update)
        self.handlers.on(v1.ReadTextFileRequest)(self.read_text_file)
        self.handlers.on(v1.RequestPermissionRequest)(self.request_permission)

    def update(self, _: v1.SessionNotification) -> None:
        self.seen += 1

    def read_text_file(self, _: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
        return v1.ReadTextFileResponse(FILE_TEXT)

    def request_permission(self, request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        chosen = next(option for option in request.options if option.kind == "allow_once")
        return v1.RequestPermissionResponse.selected(chosen)

    async def open(self) -> str:
        return (await self.peer.request(v1.NewSessionRequest(str(Path.cwd()), []))).session_id

    async def prompt(self, session: str, text: str) -> Turn:
        try:
            answer = await self.peer.request(v1.PromptRequest.of(v1.SessionId(session), text))
        except PeerError as error:
            raise Refused(error.code, error.message) from error
        return Turn(answer.stop_reason, answer.meta)

    async def cancel(self, session: str) -> None:
        await self.peer.notify(v1.CancelNotification(v1.SessionId(session)))


@asynccontextmanager
async def connect(agent: Sequence[str]) -> AsyncGenerator[AccordLink]:
    link = AccordLink()
    transport = ProcessTransport(agent)
    async with Peer(transport, link.handlers, role="client") as link.peer:
        link.pid = transport.pid or 0
        files = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(read_text_file=True))
        await link.peer.initialize(v1.InitializeRequest(1, files))
        yield link


if __name__ == "__main__":
    sys.exit(main(connect))
