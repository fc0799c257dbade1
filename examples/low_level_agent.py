"""An agent by the low level: handlers for the protocol's own messages, over standard input and output.

Start it from an editor, or with `python examples/low_level_client.py`, which is a client for it.
"""

import asyncio
import itertools
import sys

import accord
from accord import v1

handlers = accord.Handlers()
numbers = itertools.count(1)


@handlers.on(v1.InitializeRequest)
def initialize(_: v1.InitializeRequest) -> v1.InitializeResponse:
    return v1.InitializeResponse(
        protocol_version=1,
        agent_capabilities=v1.AgentCapabilities(),
        agent_info=v1.Implementation("shout", "1.0"),
    )


@handlers.on(v1.NewSessionRequest)
def new_session(_: v1.NewSessionRequest, context: accord.Context) -> v1.NewSessionResponse:
    session_id = v1.SessionId(f"session-{next(numbers)}")
    commands = v1.AvailableCommandsUpdate([v1.AvailableCommand.of("read", "shout a file", hint="a path")])
    # A client knows the session only once it has the answer.
    context.after_response(context.peer.notify, v1.SessionNotification(session_id, commands))
    return v1.NewSessionResponse(session_id)


@handlers.on(v1.PromptRequest)
async def prompt(request: v1.PromptRequest, context: accord.Context) -> v1.PromptResponse:
    text = "".join(block.text for block in request.prompt if isinstance(block, v1.TextContent))
    if text.startswith("/read "):
        asked = v1.ReadTextFileRequest(request.session_id, text.removeprefix("/read "))
        text = (await context.peer.request(asked)).content
    for word in text.upper().split():
        await context.peer.notify(v1.SessionNotification(request.session_id, v1.AgentMessageChunk.of(f"{word} ")))
        await asyncio.sleep(0)
    return v1.PromptResponse("end_turn")


async def main() -> None:
    async with accord.Peer(accord.StdioTransport.standard(), handlers, role="agent") as peer:
        await peer.connection.closed()


if __name__ == "__main__":
    if sys.stdin.isatty():
        print("This is an agent: it speaks ACP on its standard input. Try examples/low_level_client.py.")
    else:
        accord.run(main())
