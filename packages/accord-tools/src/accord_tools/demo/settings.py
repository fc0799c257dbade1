"""The modes and config options of a session."""

from __future__ import annotations

from accord import Session, Turn

MODES = (
    ("ask", "Ask", "Asks before it changes or runs anything"),
    ("explain", "Explain", "Says what it would do, and does nothing"),
    ("auto", "Auto", "Does what it is told without asking"),
)
LENGTHS = (("full", "Full"), ("short", "Short", "The first sentence of every answer"))


async def offer(session: Session) -> None:
    await session.modes.offer(MODES)
    await session.config.select("length", "Length of answers", LENGTHS, description="How much is said")
    await session.config.switch("aloud", "Think aloud", description="A thought before every answer")


async def mode(turn: Turn, name: str) -> None:
    if name in [mode[0] for mode in MODES]:
        await turn.session.modes.set(name)
        await turn.say(f"The mode is `{name}` now.")
        return
    lines = [f"- `{identifier}`: {meaning}" for identifier, _, meaning in MODES]
    await turn.say("\n".join([f"The mode is `{turn.session.modes.current}`. You can choose:", *lines]))


async def config(turn: Turn, line: str) -> None:
    option, _, value = line.partition(" ")
    if option in turn.session.config and value:
        await turn.session.config.set(option, value == "on" if option == "aloud" else value.strip())
    chosen = [f"- `{option}`: {_words(value)}" for option, value in turn.session.config.values().items()]
    await turn.say("\n".join(["These are your choices; `/config OPTION VALUE` changes one:", *chosen]))


def _words(value: str | bool) -> str:
    return value if isinstance(value, str) else "on" if value else "off"
