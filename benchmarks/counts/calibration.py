"""The loop that other counts are divided by: Python, asyncio and msgspec in about the parts of a message's way."""

import asyncio
from collections import deque

import msgspec

FRAME = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"0123456789abcdef","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"the quick brown fox"}}}}'
)


class Member(msgspec.Struct):
    """One JSON object, whose members stay as they are."""

    jsonrpc: str
    method: str
    params: msgspec.Raw


class Queue:
    """Items in the order of their arrival, and a table of them."""

    def __init__(self) -> None:
        self.items: deque[Member] = deque()
        self.table: dict[int, Member] = {}
        self.count = 0

    def put(self, item: Member) -> None:
        """Add an item."""
        self.count += 1
        self.items.append(item)
        self.table[self.count] = item

    def take(self) -> Member:
        """Remove the item that was added first."""
        item = self.items.popleft()
        del self.table[self.count]
        return item


async def calibrate(count: int) -> None:
    """One message is decoded, queued, awaited and encoded."""
    loop = asyncio.get_running_loop()
    decode, encode = msgspec.json.Decoder(Member).decode, msgspec.json.Encoder().encode
    queue = Queue()
    for _ in range(count):
        future: asyncio.Future[bytes] = loop.create_future()
        queue.put(decode(FRAME))
        loop.call_soon(future.set_result, encode(queue.take()))
        await future
