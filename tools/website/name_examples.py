"""An example for each public name: the shortest program of the docs that uses it.

Every Python block of the docs runs in the tests, so these examples do too. A block is an example of a name if

- it says so: the comment `<!-- example of: accord.Reply, accord.Outcome -->` stands above it, or
- the name stands in its code, as `accord.Reply` or imported from `accord`, or
- its code uses what gives such an object (`GIVEN_BY`): most classes are never called by their users.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.website.page import TITLE

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
DECLARED = re.compile(r"<!-- example of: (?P<names>[^>]+?) -->\s*\Z")

GIVEN_BY: dict[str, tuple[str, ...]] = {
    "accord.Chain": ("accord.chain",),
    "accord.CommandResult": ("turn.client.run",),
    "accord.Decision": ("tool.ask",),
    "accord.Elicited": ("turn.elicit",),
    "accord.MemoryTransport": ("accord.memory_pair",),
    "accord.Outcome": ("session.prompt",),
    "accord.Reply": ("reply.iter_text",),
    "accord.RemoteClient": ("turn.client.read_text_file",),
    "accord.RemoteTerminal": ("turn.client.terminal",),
    "accord.RemoteAgent": ("remote.new_session",),
    "accord.Tool": ("turn.tool",),
    "accord.ToolServer": ("accord.tools",),
    "accord.TraceEvent": ("trace.TraceEvent",),
    "accord.TurnPlan": ("turn.plan",),
    "accord.sync.RemoteSession": ("accord.sync.connect",),
    "accord.sync.Reply": ("accord.sync.connect",),
    "accord.sync.ConnectionBlock": ("accord.sync.connect",),
}
"""What a program writes to get an object of a class that it does not create itself."""


class Example(NamedTuple):
    """A program, and the page that it is from."""

    code: str
    page: str
    """The file, such as `docs/agents.md`."""
    title: str
    declared: frozenset[str] = frozenset()

    def text(self) -> str:
        """The example as it stands on a page of the reference."""
        place = "../index.md" if self.page == "README.md" else f"../{self.page.removeprefix('docs/')}"
        place = re.sub(r"README\.md$", "index.md", place)
        return f"```py\n{self.code.rstrip()}\n```\n\nFrom [{self.title}]({place})."


def examples_of_names(names: Sequence[str]) -> dict[str, Example]:
    """The example of each name that has one."""
    used = [(example, uses(example.code)) for example in examples()]
    found: dict[str, Example] = {}
    for name in names:
        declared = [it for it, _ in used if name in it.declared]
        direct = [it for it, words in used if name in words]
        given = [it for it, words in used if words & set(GIVEN_BY.get(name, ())) and is_sync(name) == any_sync(words)]
        if chosen := declared or direct or given:
            found[name] = min(chosen, key=lambda it: len(it.code))
    return found


def is_sync(name: str) -> bool:
    """Whether a name is of `accord.sync`, whose objects have the same names as those of programs with `async`."""
    return name.startswith("accord.sync.")


def any_sync(words: set[str]) -> bool:
    return any(map(is_sync, words))


def examples() -> Iterator[Example]:
    """Every Python block of the docs."""
    for file in sorted((ROOT / "docs").rglob("*.md")):
        page = file.relative_to(ROOT).as_posix()
        text = file.read_text(encoding="utf-8")
        title = TITLE.search(text)
        for block in BLOCK.finditer(text):
            before = DECLARED.search(text[: block.start()])
            names = frozenset(re.split(r",\s*", before["names"])) if before else frozenset[str]()
            yield Example(block["code"], page, title[1].replace("`", "") if title else page, names)


def uses(code: str) -> set[str]:
    """The dotted names in a program, and those that it imports from packages of ours."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Attribute():
                found.add(ast.unparse(node))
            case ast.ImportFrom(module=str(module)) if module.split(".")[0].startswith("accord"):
                found |= {f"{module}.{it.name}" for it in node.names}
            case _:
                pass
    return found
