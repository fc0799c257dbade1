"""Commands that send messages of all kinds, or ask the user: in a form, on a page, or for a login."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Annotated, Literal

from msgspec import Meta, Struct

from accord import Login, RequestError, Turn, v1
from accord_tools.demo.demo_talk import memory_of, pause, words_so_far

SIZE = 96
RATE = 8000
CHORD = (261.63, 329.63, 392.00)
"""C major: three notes in accord."""


def draw_rings(size: int = SIZE) -> bytes:
    """A PNG: two rings, linked."""
    rows = b"".join(b"\0" + bytes(_row(y, size)) for y in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)  # 8 bits, RGB
    return (
        b"\x89PNG\r\n\x1a\n"
        + _png_chunk(b"IHDR", header)
        + _png_chunk(b"IDAT", zlib.compress(rows))
        + _png_chunk(b"IEND", b"")
    )


def play_chord(seconds: float = 0.6) -> bytes:
    """A WAV: a chord that fades."""
    samples = bytes(_sample(n / RATE, seconds) for n in range(int(RATE * seconds)))
    form = struct.pack("<HHIIHH", 1, 1, RATE, RATE, 1, 8)  # PCM, mono, 8 bits
    body = b"WAVE" + _wav_part(b"fmt ", form) + _wav_part(b"data", samples)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _row(y: int, size: int) -> Iterator[int]:
    for x in range(size):
        yield from _colour(x / size, y / size)


def _colour(x: float, y: float) -> tuple[int, int, int]:
    left, right = _ring(x - 0.38, y - 0.5), _ring(x - 0.62, y - 0.5)
    if left and (y < 0.5 or not right):  # over the other above, under it below: linked
        return (38, 110, 180)
    if right:
        return (230, 140, 40)
    shade = int(250 - 20 * y)
    return (shade, shade, min(255, shade + 5))


def _ring(x: float, y: float) -> bool:
    return 0.2 < math.hypot(x, y) < 0.28


def _sample(second: float, seconds: float) -> int:
    wave = sum(math.sin(2 * math.pi * note * second) for note in CHORD) / len(CHORD)
    return int(128 + 120 * wave * (1 - second / seconds))


def _png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _wav_part(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data


STREAMED = (
    "This is a long answer, a word at a time, as a model would give it. Every word is an update of its own, and they "
    "arrive in the order in which they were sent. You may cancel at any word. "
)
MOST_WORDS = 100_000
CONTEXT = 8_000
"""The context of an imaginary model of this agent, in words."""
PRICE = 0.000_01

REASONS: tuple[v1.StopReason, ...] = ("end_turn", "max_tokens", "max_turn_requests", "refusal")


async def think(turn: Turn) -> None:
    for thought in ("You want to see me think. ", "I have no model, so there is little to see. ", "Done."):
        await turn.think(thought)
        await pause(turn, 4)
    await turn.say("That was a thought. Most clients fold or dim it.")


async def picture(turn: Turn) -> None:
    await turn.say("Two linked rings, drawn just now:")
    await turn.say(v1.ImageContent.from_bytes(draw_rings(), "image/png"))


async def sound(turn: Turn) -> None:
    await turn.say("Three notes in accord:")
    await turn.say(v1.AudioContent.from_bytes(play_chord(), "audio/wav"))


async def resource(turn: Turn) -> None:
    await turn.say("A link to this folder, and a text that travels along:")
    await turn.say(v1.ResourceLink.to(turn.cwd, title="Working folder"))
    await turn.say(v1.EmbeddedResource.from_text("Nothing is lost.\n", "demo:///promise.txt", "text/plain"))


async def stream(turn: Turn, text: str) -> None:
    words = STREAMED.split()
    for word in islice(cycle(words), number(text, len(words), MOST_WORDS)):
        await turn.say(f"{word} ")
        await pause(turn)


async def notify(turn: Turn) -> None:
    shown = await turn.session.notice("This is a notice", "It is no part of the conversation.", severity="info")
    await turn.say("I sent you a notice." if shown else "Your client shows no notices; mine would have said hello.")


async def suggest(turn: Turn) -> None:
    shown = await turn.session.suggest("What is in here?", "/plan", "/edit")
    await turn.say("I suggest what you may say next." if shown else "Your client shows no suggestions of prompts.")


async def usage(turn: Turn) -> None:
    words = await words_so_far(turn)
    await turn.usage(words, CONTEXT, words * PRICE)
    await turn.say(f"We have used {words:,} words of the {CONTEXT:,} that I could keep in mind, if I had one.")


async def title(turn: Turn, text: str) -> None:
    if not text:
        await turn.say(
            f"This session is called “{turn.session.title or 'nothing yet'}”. Say `/title WORDS` to name it."
        )
        return
    await turn.session.set_title(text)
    await turn.say(f"This session is called “{text}” from now on.")


async def fail(turn: Turn) -> None:
    await turn.say("The next thing that you see is an error, raised on purpose.")
    raise RequestError.internal("This error was asked for", command="/error")


async def stop(turn: Turn, text: str) -> v1.StopReason | None:
    for reason in REASONS:
        if reason == (text or "refusal"):
            await turn.say(f"This turn ends with `{reason}`.")
            return reason
    await turn.say(
        f"I can stop with {', '.join(f'`{reason}`' for reason in REASONS)}. To say `cancelled` is up to you."
    )
    return None


def number(text: str, default: int, most: int) -> int:
    """Return the number that a user sent, if it is one."""
    return min(int(text), most) if text.isascii() and text.isdigit() else default


HOME_PAGE = "https://agentclientprotocol.com"


class TasteForm(Struct):
    """The form, as a class: each field is one question."""

    name: Annotated[str, Meta(min_length=1, max_length=40, description="What shall I call you?")]
    colour: Literal["red", "green", "blue"] = "blue"
    cups: Annotated[int, Meta(ge=0, le=20, description="Cups of coffee a day")] = 2
    likes_protocols: bool = True


class LoginForm(Struct):
    """The form of a login."""

    yes: bool = True


async def form(turn: Turn) -> None:
    answer = await turn.elicit("Tell me about you", TasteForm, fallback=TasteForm("nobody"))
    if answer.action == "unavailable":
        await turn.say("Your client shows no forms. I would have asked for your name, a colour, and your coffee.")
    elif answer.accepted and (taste := answer.value):
        memory_of(turn).name = taste.name
        likes = "and like protocols" if taste.likes_protocols else "and do not like protocols"
        await turn.say(f"You are {taste.name}, prefer {taste.colour}, drink {taste.cups} cups a day {likes}.")
    else:
        await turn.say("You would rather not say, and that is fine.")


async def page(turn: Turn) -> None:
    answer = await turn.elicit_url("Please have a look at the protocol's home page", HOME_PAGE)
    if answer.action == "unavailable":
        await turn.say(f"Your client sends you nowhere. I would have asked you to visit {HOME_PAGE}.")
    elif answer.accepted:
        await answer.complete()
        await turn.say("Thank you. What you did there, only the page knows.")
    else:
        await turn.say("Then not.")


async def log_in(login: Login) -> bool:
    """Log every user in; a client that shows forms asks for a confirmation."""
    answer = await login.elicit("Log in to the demonstration?", LoginForm, fallback=LoginForm(yes=True))
    return bool(answer.value and answer.value.yes)
