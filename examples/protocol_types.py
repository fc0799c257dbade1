"""The protocol's types, and how they are written and read."""

from accord import DecodeError, v1
from accord.schema import codec

update = v1.SessionNotification(
    session_id=v1.SessionId("s-1"),
    update=v1.ToolCall.editing(v1.ToolCallId("t-1"), "/home/me/hello.txt", new_text="HELLO\n", old_text="hello\n"),
)
on_the_wire = codec.encode(update)
print("What an agent sends when it edits a file:\n ", on_the_wire.decode())

again = codec.decode(on_the_wire, v1.SessionNotification)
print("What a client gets:\n ", again)
assert again == update

newer = b'{"sessionId":"s-1","update":{"sessionUpdate":"hologram","depth":3}}'
print("An update that is newer than this library, kept and passed on whole:")
print(" ", kept := codec.decode(newer, v1.SessionNotification))
assert codec.encode(kept) == newer

sloppy = (
    b'{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":'
    b'{"type":"text","text":"Hi","annotations":"none"}}}'
)
print("A field that is a little wrong, read as its default:")
print(" ", codec.decode(sloppy, v1.SessionNotification))

print("A message that is wrong where it matters, and where:")
try:
    codec.decode(b'{"sessionId":"s-1","prompt":[{"type":"text"}]}', v1.PromptRequest)
except DecodeError as error:
    print(" ", error)
