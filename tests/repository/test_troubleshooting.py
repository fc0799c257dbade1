"""The page about errors has texts that the sources make, and one for every kind of error that a user can meet."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT, SOURCES

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text().partition("\n## No message at all")[0]
CELL = re.compile(r"^\| (`.+?`) \| ", re.MULTILINE)
"""The first cell of a row, with one message or several."""
MESSAGE = re.compile(r"(?P<ticks>`+) ?(?P<message>.+?) ?(?P=ticks)(?!`)")
GAP = re.compile(r"…|%\w+|\{\w+\}")
"""What differs from message to message: on the page, in a line of the log, and in a template."""

UNSEEN = {
    "BadRequest": "only the pages of the inspector send such requests",
    "DecodeError": "its text is the codec's, and stands in those of ProtocolError",
    "EndedError": "its text is one of ConnectionClosed",
    "PeerError": "its text is the other side's",
    "RawPeerError": "its text is the other side's",
    "ServerGone": "it is caught, and the server started again",
}
"""Errors that have no entry, and the reason."""


def text_of(node: ast.expr) -> str:
    """A string as its message: what is filled in is a gap."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(text_of, parts))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return text_of(left) + text_of(right)
        case _:
            return "…"


def texts_in(tree: ast.AST) -> list[str]:
    """The texts of a module or a part of one, without docstrings."""
    nodes = list(ast.walk(tree))
    explanations = {id(it.value) for it in nodes if isinstance(it, ast.Expr)}
    strings = (it for it in nodes if isinstance(it, ast.JoinedStr | ast.Constant | ast.BinOp))
    return [text_of(it) for it in strings if id(it) not in explanations]


@cache
def modules() -> list[ast.Module]:
    return [ast.parse(path.read_text()) for source in SOURCES for path in Path(source).rglob("*.py")]


def as_lines(texts: Iterable[str]) -> str:
    return "".join(f"{text.replace(chr(10), ' ')}\n" for text in texts)


@cache
def sources() -> str:
    """Every text of the sources, one on a line."""
    return as_lines(text for tree in modules() for text in texts_in(tree))


def is_made_by(message: str, texts: str) -> bool:
    """Whether one of the texts, each a line, has the parts of a message between its gaps, in their order."""
    parts = [it for it in GAP.split(message) if it]
    rarest = max(parts, key=len)
    at = -1
    while (at := texts.find(rarest, at + 1)) >= 0:
        line = texts[texts.rfind("\n", 0, at) + 1 : texts.find("\n", at)]
        place = 0
        for part in parts:
            place = line.find(part, place) + len(part) if part in line[place:] else -1
            if place < 0:
                break
        else:
            return True
    return False


def messages() -> list[str]:
    return [it["message"] for cell in CELL.findall(PAGE) for it in MESSAGE.finditer(cell)]


def errors_of_accord() -> set[str]:
    """The names of all classes below `AccordError`, without private ones."""
    bases = {
        it.name: {ast.unparse(base).split(".")[-1] for base in it.bases}
        for tree in modules()
        for it in ast.walk(tree)
        if isinstance(it, ast.ClassDef)
    }
    found = {"AccordError"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return {it for it in found if not it.startswith("_")}


def texts_of_errors() -> dict[str, set[str]]:
    """The texts of each error: in its class, and in the functions that name it."""
    found: dict[str, set[str]] = {name: set() for name in errors_of_accord()}
    for node in (it for tree in modules() for it in ast.walk(tree)):
        match node:
            case ast.ClassDef(name=name):
                names = {name}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                names = {it.id for it in ast.walk(node) if isinstance(it, ast.Name)}
            case _:
                continue
        for name in found.keys() & names:
            found[name].update(texts_in(node))
    return found


@pytest.mark.parametrize("message", messages())
def test_a_message_of_the_page_is_one_that_the_sources_make(message):
    assert is_made_by(message, sources()), "no text of the sources has these words; correct or remove the entry"


def test_no_message_has_two_entries():
    assert len(set(messages())) == len(messages())


def test_every_error_that_a_user_can_meet_has_an_entry():
    made = {name: as_lines(texts) for name, texts in texts_of_errors().items()}
    without = {name for name, texts in made.items() if not any(is_made_by(it, texts) for it in messages())}
    assert without - UNSEEN.keys() == set(), "add an entry to docs/troubleshooting.md, or a reason to UNSEEN"


def test_an_entry_whose_words_no_source_has_is_found():
    assert not is_made_by("the … has no such words", "the agent has no words\nsuch")
