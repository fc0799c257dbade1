"""Commands that ask the user: forms, pages to visit, and the login."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from accord import Login, Turn
from accord.agent.user_questions import UNAVAILABLE
from accord_tools.demo.memory import memory_of

PAGE = "https://agentclientprotocol.com"


class Taste(Struct):
    """The form, as a class: each field is one question."""

    name: Annotated[str, Meta(min_length=1, max_length=40, description="What shall I call you?")]
    colour: Literal["red", "green", "blue"] = "blue"
    cups: Annotated[int, Meta(ge=0, le=20, description="Cups of coffee a day")] = 2
    likes_protocols: bool = True


class Consent(Struct):
    """The form of a login."""

    yes: bool = True


async def form(turn: Turn) -> None:
    answer = await turn.elicit("Tell me about you", Taste, fallback=Taste("nobody"))
    if answer.action == UNAVAILABLE:
        await turn.say("Your client shows no forms. I would have asked for your name, a colour, and your coffee.")
    elif answer.accepted and (taste := answer.value):
        memory_of(turn).name = taste.name
        likes = "and like protocols" if taste.likes_protocols else "and do not like protocols"
        await turn.say(f"You are {taste.name}, prefer {taste.colour}, drink {taste.cups} cups a day {likes}.")
    else:
        await turn.say("You would rather not say, and that is fine.")


async def page(turn: Turn) -> None:
    answer = await turn.elicit_url("Please have a look at the protocol's home page", PAGE)
    if answer.action == UNAVAILABLE:
        await turn.say(f"Your client sends you nowhere. I would have asked you to visit {PAGE}.")
    elif answer.accepted:
        await answer.complete()
        await turn.say("Thank you. What you did there, only the page knows.")
    else:
        await turn.say("Then not.")


async def log_in(login: Login) -> bool:
    """Log every user in; a client that shows forms asks for a confirmation."""
    answer = await login.elicit("Log in to the demonstration?", Consent, fallback=Consent(yes=True))
    return bool(answer.value and answer.value.yes)
