"""A proxy that answers permission requests: reading is allowed, `rm` and `git push` are refused, the rest is asked.

accord conduct "python permission_policy.py" "gemini --acp"

A refusal is shown to the user as a thought of the agent, so that nothing happens in silence.
"""

import json
import sys
from typing import Any

import accord
from accord import v1, v2
from accord.schema import codec

REFUSED = ("rm ", "rm\t", "git push", "sudo ")
ALLOWED_KINDS = ("read", "search", "think")

proxy = accord.Proxy("permission-policy", version="1.0")


@proxy.permissions
def decide(request: Any, hop: accord.sync.Hop[Any]) -> bool | None:
    asked = codec.plain(request)
    text = json.dumps(asked, ensure_ascii=False)
    if any(word in text for word in REFUSED):
        tell(hop, f"The policy refused: {title_of(asked)}")
        return False
    if call_of(asked).get("kind") in ALLOWED_KINDS:
        return True
    return None


def call_of(asked: dict[str, Any]) -> dict[str, Any]:
    """The tool call that the question is about: version 2 puts it into the question's subject."""
    call: dict[str, Any] = asked.get("toolCall") or asked.get("subject", {}).get("toolCall") or {}
    return call


def title_of(asked: dict[str, Any]) -> str:
    return str(asked.get("title") or call_of(asked).get("title") or "a request without a title")


def tell(hop: accord.sync.Hop[Any], text: str) -> None:
    session = v1.SessionId(hop.session_id or "")
    if hop.version == 1:
        hop.client.tell(v1.SessionNotification(session, v1.AgentThoughtChunk.of(text)))
    else:
        chunk = v2.AgentThoughtChunk(v2.TextContent(text), v2.MessageId("permission-policy"))
        hop.client.tell(v2.UpdateSessionNotification(session, chunk))
    print(text, file=sys.stderr)


if __name__ == "__main__":
    proxy.run()
