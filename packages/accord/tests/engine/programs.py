"""Random programs for two sides of a link: what each handler does, and what their order must have been.

A program is a tree. Each node is the handler of one message, which its parent sends to the other side; what a node does
is a list of steps, and most steps send further nodes. Every wait is for an answer, for a child task of the same handler
or for room to send, and no chain of them leads back to its start. So whatever the program is, it comes to an end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["tell", "ask"]
Inside = Literal["tell", "ask", "driver", "task", "afterwards", "child of afterwards"]

SESSIONS = (None, "one", "two", "three")
DEEPEST = 7


STEPS = {
    "yield": 4.0,  # let others run
    "tell": 0.0,  # a notification; how many differs from program to program
    "ask": 8.0,  # a request, and wait for its answer
    "give up": 1.0,  # a request, cancelled after a while
    "together": 2.0,  # child tasks, joined
    "detach": 1.0,  # a child task that is left behind
    "stop": 0.5,  # session/cancel
    "afterwards": 1.0,  # something once the answer is on its way
    "fail": 0.3,
    "cancel myself": 0.3,
    "close": 0.0,  # the connection; in some programs
}
"""What handlers do, and how likely."""


@dataclass
class Step:
    """What a handler does next. Which fields mean something depends on `does`."""

    does: str
    node: Node | None = None
    session: str | None = None
    times: int = 0
    patient: bool = False
    timed: bool = False
    branches: list[list[Step]] = field(default_factory=list)

    def __repr__(self):
        details = [f"in {self.session}"] if self.node or self.does == "stop" else []
        details += [f"x{self.times}"] if self.times else []
        details += [word for word in ("patient", "timed") if getattr(self, word)]
        details += [repr(part) for part in (self.node, *self.branches) if part]
        return f"<{' '.join([self.does, *details])}>"


@dataclass
class Node:
    """One message, and what its handler does."""

    number: int
    kind: Kind
    form: Literal["def", "async def", "def that gives an awaitable"]
    steps: list[Step]
    stubborn: bool = False
    """Turns its cancellation into a result."""
    last_words: list[Step] = field(default_factory=list)
    """What it still does when it is cancelled."""

    def __repr__(self):
        last = f" finally {self.last_words}" if self.last_words else ""
        return f"{self.kind} {self.number} ({self.form}{', stubborn' if self.stubborn else ''}) {self.steps}{last}"


class Program:
    """What the tasks of both sides do, and the marks and limits they do it under."""

    def __init__(self, seed: int):
        self.random = rng = random.Random(seed)
        self.nodes: list[Node] = []
        self._left = rng.choice([4, 12, 30, 60])
        self._sessions = rng.sample(SESSIONS, rng.randint(1, len(SESSIONS)))
        closes = rng.random() < 0.3
        self._weights = STEPS | {"tell": rng.choice([1, 5, 12]), "close": 0.3 if closes else 0}
        self.high_water = rng.choice([1, 300, 2_000, 1_000_000])
        self.intake = rng.choice([1, 300, 2_000, 1_000_000])
        self.drivers = [[self._steps(0, "driver") for _ in range(rng.randint(0, 3))] for _ in range(2)]
        self.break_at = rng.randint(1, 60) if rng.random() < 0.1 else None
        """After how many entries of its log the first side's transport closes under its connection."""
        self.impatient = rng.random() < 0.5
        """Whether closing is itself cancelled."""

    def __repr__(self):
        sides = "\n".join(f"  {name}: {steps}" for name, steps in zip(("here", "there"), self.drivers, strict=True))
        ends = f", breaks at {self.break_at}" if self.break_at else ""
        return f"high water {self.high_water}, intake {self.intake}{ends}\n{sides}"

    def _steps(self, depth: int, inside: Inside) -> list[Step]:
        steps = [self._step(depth, inside) for _ in range(self.random.choice([0, 1, 1, 2, 3, 5]))]
        return [step for step in steps if step is not None]

    def _step(self, depth: int, inside: Inside) -> Step | None:
        rng = self.random
        if self._left <= 0 or depth > DEEPEST:
            return Step("yield", times=rng.randint(0, 3))
        does = rng.choices(list(self._weights), list(self._weights.values()))[0]
        session = rng.choice(self._sessions)
        match does:
            case "yield":
                return Step("yield", times=rng.randint(1, 4))
            case "tell":
                return Step("tell", self._node("tell", depth), session)
            case "ask":
                few = rng.random()
                return Step("ask", self._node("ask", depth), session, patient=few < 0.2, timed=few > 0.9)
            case "give up":
                return Step("give up", self._node("ask", depth), session, times=rng.randint(0, 6))
            case "together":
                child: Inside = "child of afterwards" if "afterwards" in inside else "task"
                return Step("together", branches=[self._steps(depth, child) for _ in range(rng.randint(1, 4))])
            case "detach":
                return Step("detach", branches=[self._steps(depth, "task")])
            case "stop":
                return Step("stop", session=session)
            case "close" if inside != "child of afterwards":  # it would wait for its parent, and its parent for it
                return Step("close")
            case "afterwards" if inside == "ask":
                return Step("afterwards", branches=[self._steps(depth, "afterwards")])
            case "fail" | "cancel myself" if inside in {"tell", "ask"}:
                return Step(does)
        return None

    def _node(self, kind: Kind, depth: int) -> Node:
        rng = self.random
        self._left -= 1
        form = rng.choices(["def", "async def", "def that gives an awaitable"], [3, 6, 1])[0]
        node = Node(len(self.nodes), kind, form, [])
        self.nodes.append(node)
        if form != "def":
            node.steps = self._steps(depth + 1, kind)
            node.stubborn = rng.random() < 0.2
            if rng.random() < 0.2:
                node.last_words = [Step("tell", self._node("tell", depth), rng.choice(self._sessions))]
        elif rng.random() < 0.15:
            node.steps = [Step("detach", branches=[self._steps(depth + 1, "task")])]
        elif rng.random() < 0.1:
            node.steps = [Step(rng.choice(["fail", "cancel myself"]))]
        return node
