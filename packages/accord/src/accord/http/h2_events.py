"""What can happen on an HTTP/2 connection, as `Link.receive` reports it. PURE."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from accord.http.h2_fields import Head


class Started(msgspec.Struct, frozen=True, gc=False):
    """The header of a request or of a response has arrived."""

    stream: int
    head: Head
    ends: bool
    """Whether the message ends with it."""


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """A part of a body has arrived. `counted` must be acknowledged; padding makes it more than the data."""

    stream: int
    data: bytes
    counted: int
    ends: bool


class Reset(msgspec.Struct, frozen=True, gc=False):
    """A stream has ended before its time; `detail` says why if it was ended here."""

    stream: int
    code: int
    detail: str = ""


class Room(msgspec.Struct, frozen=True, gc=False):
    """A window or a limit has changed: what waits for room may go on."""


class Chore(msgspec.Struct, frozen=True, gc=False):
    """A frame that cost work and brought nothing."""


class Goodbye(msgspec.Struct, frozen=True, gc=False):
    """The peer is closing the connection: it takes no new streams. Those that are open go on to their end."""

    code: int


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The peer broke a rule. What `output` holds must be written, and then the connection must be closed."""

    detail: str


Event: TypeAlias = Started | Arrived | Reset | Room | Chore | Goodbye | Failed

ROOM, CHORE = Room(), Chore()
