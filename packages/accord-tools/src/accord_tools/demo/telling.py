"""Commands that send messages, thoughts, pictures, sounds, resources, notices, usage and stop reasons."""

from __future__ import annotations

from itertools import cycle, islice

from accord import RequestError, Turn, v1
from accord_tools.demo import media
from accord_tools.demo.memory import pause, words_so_far

STREAMED = (
    "This is a long answer, a word at a time, as a model would give it. Every word is an update of its own, and they "
    "arrive in the order in which they were sent. You may cancel at any word. "
)
MOST_WORDS = 100_000
CONTEXT = 8_000
"""Words that a model of this agent's wit could keep in mind."""
PRICE = 0.000_01

REASONS: tuple[v1.StopReason, ...] = ("end_turn", "max_tokens", "max_turn_requests", "refusal")


async def think(turn: Turn) -> None:
    for thought in ("You want to see me think. ", "I have no model, so there is little to see. ", "Done."):
        await turn.think(thought)
        await pause(turn, 4)
    await turn.say("That was a thought. Most clients fold or dim it.")


async def picture(turn: Turn) -> None:
    await turn.say("Two linked rings, drawn just now:")
    await turn.say(v1.ImageContent.from_bytes(media.picture(), "image/png"))


async def sound(turn: Turn) -> None:
    await turn.say("Three notes in accord:")
    await turn.say(v1.AudioContent.from_bytes(media.sound(), "audio/wav"))


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
    """The number that a user gave, if it is one."""
    return min(int(text), most) if text.isascii() and text.isdigit() else default
