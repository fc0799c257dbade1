"""What a model says in a test, the same for each framework, and the tools that it may call."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Think:
    text: str


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class Call:
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Refuse:
    """The provider refuses the request, in these words."""

    words: str
    status: int = 400

    @property
    def body(self):
        return {"error": {"type": "invalid_request_error", "message": self.words}}


@dataclass(frozen=True)
class Wait:
    """The model says nothing more until the test is over."""


def openai_error(refused):
    """The error of OpenAI's package for such an answer."""
    import httpx2
    import openai

    response = httpx2.Response(refused.status, request=httpx2.Request("POST", "https://api.example"))
    return openai.BadRequestError("refused", response=response, body=refused.body["error"])


READ, WRITTEN = 10, 5
"""Tokens of each request."""


@dataclass
class Script:
    """One list of steps for each request to the model."""

    answers: list[list[Think | Say | Call | Wait | Refuse]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Each request, as text that holds all of its messages."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set at the end of the test, for models that wait in a thread."""

    def says(self, *answers):
        self.answers += answers

    def answer(self, request: object) -> list[Think | Say | Call | Wait | Refuse]:
        """The steps of the next answer, for a request that is kept."""
        self.asked.append(request if isinstance(request, str) else json.dumps(request, default=str))
        return self.answers.pop(0)


TODOS = [
    {"content": "Read", "status": "completed"},
    {"content": "Write", "status": "in_progress"},
]
