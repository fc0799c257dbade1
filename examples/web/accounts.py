"""The users of team.py, and the tokens that they get when they log in."""

import os
from datetime import UTC, datetime, timedelta

import jwt

SECRET = os.environ["SECRET"]
"""Signs the tokens: 32 random bytes or more."""

USERS = {"ada": "lovelace", "bob": "ross"}
"""Stands for your table of users; keep hashes of passwords there."""


def token_for(name: str, password: str) -> str | None:
    """A token for eight hours; None for a wrong name or password."""
    if USERS.get(name) != password:
        return None
    return jwt.encode({"sub": name, "exp": datetime.now(UTC) + timedelta(hours=8)}, SECRET, algorithm="HS256")


def owner_of(token: str) -> str | None:
    """The user of a token; None for one that is expired or not ours."""
    try:
        return str(jwt.decode(token, SECRET, algorithms=["HS256"], options={"require": ["exp", "sub"]})["sub"])
    except jwt.InvalidTokenError:
        return None
