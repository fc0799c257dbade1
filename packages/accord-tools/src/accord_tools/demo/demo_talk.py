"""Answers plain text with a few rules, tried in order, without a model, and remembers a session's words."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path

from msgspec import Struct

from accord import Session, Turn, Unknown, v1

PACE = 0.03
"""Seconds between two words, so that people can watch them arrive."""


class Memory(Struct):
    """Stored in `session.state`, and with the session in its store."""

    name: str | None = None
    """The name that the user gave."""
    pace: float = PACE


def memory_of(turn: Turn) -> Memory:
    memory: Memory = turn.session.state
    return memory


async def pause(turn: Turn, beats: int = 1) -> None:
    """Wait as long as it would take to say this many words."""
    await asyncio.sleep(memory_of(turn).pace * beats)


async def words_so_far(turn: Turn) -> int:
    """Return how many words were received, thought and said in this session: the demo counts them as tokens."""
    history = await turn.session.history()
    return sum(len(message.text.split()) for message in history.messages)


@cache
def vocabulary() -> dict[str, dict[str, str]]:
    """The terms that are explained, and other names of them."""
    return tomllib.loads(Path(__file__).with_name("demo_words.toml").read_text("utf-8"))


def about(words: str) -> str | None:
    """The explanation of the term in this text; of several terms, the longest one counts."""
    text, terms, names = words.lower(), vocabulary()["terms"], vocabulary()["names"]
    found = [name for name in (*terms, *names) if re.search(rf"\b{re.escape(name)}s?\b", text)]
    if not found:
        return None
    name = max(found, key=len)
    return terms[names.get(name, name)]


SHOWN_NAMES = 20
"""Names of a folder that an answer shows."""

LENT = {
    "reading files": "fs.read_text_file",
    "writing files": "fs.write_text_file",
    "terminals": "terminal",
    "forms": "elicitation.form",
    "pages to visit": "elicitation.url",
    "notices": "session.notices",
    "compactions": "session.compaction",
    "subagents": "subagents",
    "several plans": "plan",
    "on-off options": "session.config_options.boolean",
    "terminal logins": "auth.terminal",
}
"""The services that a client may offer, by capability."""

Answer = Callable[[Turn, re.Match[str]], Awaitable[str] | str]


async def talk(turn: Turn) -> None:
    """Answer a prompt that is not a command."""
    for block in turn.prompt:
        if not isinstance(block, v1.TextContent):
            await turn.say(f"{seen(block)}\n")
    if text := turn.text.strip():
        said = await answer(turn, text)
        if turn.session.config["aloud"]:
            await turn.think("I have heard that before, and know what to say.")
        for word in re.findall(r"\S+\s*", said if turn.session.config["length"] == "full" else first_sentence(said)):
            await turn.say(word)
            await pause(turn)


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


async def answer(turn: Turn, text: str) -> str:
    for pattern, reply in RULES:
        if match := pattern.search(text):
            result = reply(turn, match)
            said = result if isinstance(result, str) else await result
            if said:
                return said
    return (
        f"You said: {text}\n\nI am a demonstration and have no model inside, so that is as far as I can follow. "
        "Ask me what I see here, what a tool call is, or say `/help`."
    )


def seen(block: v1.ContentBlock | Unknown) -> str:
    """Describe the attachments of a prompt."""
    match block:
        case v1.ImageContent(data=data, mime_type=kind) | v1.AudioContent(data=data, mime_type=kind):
            return f"You sent me {len(data) * 3 // 4:,} bytes of {kind}."
        case v1.ResourceLink(name=name, uri=uri):
            return f"You pointed me to {name} ({uri})."
        case v1.EmbeddedResource(resource=v1.TextResourceContents(text=text, uri=uri)):
            return f"You sent me {uri}: {len(text.splitlines()):,} lines, {len(text):,} characters."
        case v1.EmbeddedResource(resource=v1.BlobResourceContents(blob=blob, uri=uri)):
            return f"You sent me {uri}: {len(blob) * 3 // 4:,} bytes."
        case _:
            return "You sent me something of a kind that I do not know."


async def describe_client(turn: Turn) -> None:
    """List what this client offers."""
    has = turn.client.capabilities.has
    lines = [f"- {what}: {'yes' if has(path) else 'no'}" for what, path in LENT.items()]
    known = turn.client.info
    who = f"{known.title or known.name} {known.version}" if known else "a client that does not say its name"
    await turn.say("\n".join([f"You use {who}. It offers me:", *lines]))


# Answers


async def greet(turn: Turn, _: re.Match[str]) -> str:
    known = turn.client.info
    who = f" I see you use {known.title or known.name}." if known is not None else ""
    again = " again" if await words_so_far(turn) > len(turn.text.split()) else ""
    name = f", {known_as}" if (known_as := memory_of(turn).name) else ""
    await turn.session.suggest("/help", "What is in here?", "/edit")
    return f"Hello{again}{name}!{who} I am Accord's built-in agent. Say `/help` to see what I can show you."


_NAME = r"\b(my name is|call me)\s+(?P<name>.+)"


def remember_name(turn: Turn, match: re.Match[str]) -> str:
    name = memory_of(turn).name = _name_in(match)
    return f"Pleased to meet you, {name}. I shall remember that, as long as this session lives."


def _name_in(match: re.Match[str]) -> str:
    return match["name"].strip(" .!\"'")


async def rewind(session: Session) -> None:
    """Remember only the name from before the place to which the session was rewound."""
    said = [it.text for it in (await session.history()).messages if it.speaker == "user"]
    names = [match for text in said if (match := re.search(_NAME, text, re.IGNORECASE))]
    session.state.name = _name_in(names[-1]) if names else None


def recall_name(turn: Turn, _: re.Match[str]) -> str:
    name = memory_of(turn).name
    return f"You are {name}." if name else "You have not told me. Say: my name is ..."


def thank(*_: object) -> str:
    return "You are welcome."


def part(*_: object) -> str:
    return "Goodbye! This session stays as it is until your client closes it."


def introduce(*_: object) -> str:
    return (
        "I am the built-in agent of Accord, the Agent Client Protocol for Python. I have no model and use no network: "
        "everything I do is written down in a few hundred lines. I am here to show what a client can show "
        "and what an agent can do: `/help` lists all of it."
    )


def repeat(_: Turn, match: re.Match[str]) -> str:
    return match["what"].strip("\"'“” ")


def tell_the_time(*_: object) -> str:
    return f"It is {datetime.now().astimezone():%H:%M on %A, %d %B %Y}."


def reckon(_: Turn, match: re.Match[str]) -> str:
    left, right = float(match["left"]), float(match["right"])
    if match["sign"] in "/:" and right == 0:
        return "Nothing can be divided by zero."
    result = {"+": left + right, "-": left - right, "*": left * right, "x": left * right}.get(match["sign"])
    return f"{left / right if result is None else result:g}"


async def look_around(turn: Turn, _: re.Match[str]) -> str:
    return folder(turn.cwd)


def folder(path: Path) -> str:
    """Describe the contents of this folder."""
    try:
        visible = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
        entries = sorted(visible, key=lambda entry: (entry.is_file(), entry.name))
    except OSError as error:
        return f"I cannot look into {path}: {error.strerror}."
    if not entries:
        return f"I am in {path}, and it is empty. Say `/edit` and I shall write a first page."
    names = [f"`{entry.name}/`" if entry.is_dir() else f"`{entry.name}`" for entry in islice(entries, SHOWN_NAMES)]
    more = f" and {len(entries) - SHOWN_NAMES:,} more" if len(entries) > SHOWN_NAMES else ""
    return f"I am in {path}. I see {', '.join(names)}{more}. Say `/read FILE` and I shall read one."


def explain(_: Turn, match: re.Match[str]) -> str:
    return about(match.string) or ""


def offer_help(*_: object) -> str:
    return (
        "I can show you everything that an agent can do. Say `/help` for the list, or ask me what a plan or a mode is."
    )


def _rule(pattern: str, answer: Answer) -> tuple[re.Pattern[str], Answer]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL), answer


NUMBER = r"-?\d+(?:\.\d+)?"
SUM_ENDS = r"(?=[?!.,;=]*(?:\s|$))"

RULES: list[tuple[re.Pattern[str], Answer]] = [
    _rule(r"^\s*(say|repeat|echo)\b[:,]?\s+(?P<what>.+)", repeat),
    _rule(r"^\W*(hi|hello|hey|good (morning|day|evening)|servus|moin)\b[^?]*$", greet),
    _rule(_NAME, remember_name),
    _rule(r"\bmy name\b|\bwho am i\b", recall_name),
    _rule(r"^\W*(thanks|thank you|cheers)\b", thank),
    _rule(r"^\W*(bye|goodbye|see you)\b", part),
    _rule(r"\bwho (are|is) you\b|\bwhat are you\b|\byour name\b|\bintroduce yourself\b|\babout yourself\b", introduce),
    _rule(
        r"\b(what|which)\b.*\b(see|here|folder|directory|files?)\b|\blook around\b|^\W*ls\b|\blist\b.*\bfiles\b",
        look_around,
    ),
    _rule(r"\bwhat(.s| is) the (time|date)\b|\bwhat time\b|\bwhat day\b", tell_the_time),
    # A sum is between blanks: parts of addresses, dates and versions do not count, nor does a time such as 12:30.
    _rule(rf"(?<!\S)(?P<left>{NUMBER})\s*(?P<sign>[-+*/x]|(?<=\s):(?=\s))\s*(?P<right>{NUMBER}){SUM_ENDS}", reckon),
    _rule(r"\b(what|explain|how|why|tell me|who|define|mean)\b|\?", explain),
    _rule(r"\bhelp\b|\bwhat can (you|i)\b|\bhow do i\b|\bwhat do you do\b", offer_help),
]
