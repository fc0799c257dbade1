"""A client by the low level: starts an agent, lends it one file, and shows what it says.

python examples/low_level_client.py [AGENT [ARGUMENT ...]]
"""

import sys
from pathlib import Path

import accord
from accord import v1

handlers = accord.Handlers()


@handlers.on(v1.SessionNotification)
def update(notification: v1.SessionNotification) -> None:
    match notification.update:
        case v1.AgentMessageChunk(content=v1.TextContent(text=text)):
            print(text, end="", flush=True)
        case other:
            print(f"({type(other).__name__})")


@handlers.on(v1.ReadTextFileRequest)
def read_text_file(request: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
    if request.path != "/notes.txt":
        raise accord.RequestError.not_found(f"no file {request.path}")
    return v1.ReadTextFileResponse("what the client lends, the agent can read")


async def main(agent: list[str]) -> None:
    async with accord.Peer(accord.ProcessTransport(agent), handlers, role="client") as peer:
        lends = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(read_text_file=True))
        hello = await peer.initialize(v1.InitializeRequest(protocol_version=1, client_capabilities=lends))
        print("Connected to", hello.agent_info.name if hello.agent_info else "an agent")
        session = await peer.request(v1.NewSessionRequest(cwd=str(Path.cwd()), mcp_servers=[]))
        for text in ("nothing is lost", "/read /notes.txt", "/read /secrets.txt"):
            print(f"> {text}")
            try:
                answer = await peer.request(v1.PromptRequest.of(session.session_id, text), timeout=30)
                print(f"\n[{answer.stop_reason}]")
            except accord.PeerError as error:
                print(f"[{error}]")


if __name__ == "__main__":
    shout = [sys.executable, str(Path(__file__).with_name("low_level_agent.py"))]
    accord.run(main(sys.argv[1:] or shout))
