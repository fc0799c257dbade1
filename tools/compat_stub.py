"""Writes src/accord/compat/acp/schema.pyi: the models of the official SDK's names, as type checkers see them.

    python tools/compat_stub.py            rewrite the stub; `ruff format` breaks its lines
    python tools/compat_stub.py --check    only say whether it is up to date

The models are made while a program runs, from the types of `accord.v1`. The stub is made from the models.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from accord.compat.acp import schema
from accord.compat.models import BaseModel, RootModel
from accord.compat.models.listing import MODELS

STUB = Path(__file__).parent.parent / "src" / "accord" / "compat" / "acp" / "schema.pyi"
HEAD = """\
# The models of the protocol, by their names in the official Python SDK. Written by tools/compat_stub.py.

from typing import Any, Literal, TypeAlias

from accord.compat.models import BaseModel as BaseModel, RootModel
"""


def text() -> str:
    """The whole stub."""
    return "\n".join([HEAD, *(line for name in in_order() for line in declared(name))])


def in_order() -> list[str]:
    """The official SDK's names and those of the models that these hold; each class after its base."""
    names = set(MODELS)
    waiting = list(MODELS)
    while waiting:
        held = {it.__name__ for it in models_in(getattr(schema, waiting.pop()))} - names
        names |= held
        waiting += held
    return sorted(names, key=lambda name: (not is_model(name), depth(name), name))


def models_in(made: Any) -> Iterator[Any]:
    """The models that this one is made of: those of its fields, and its base."""
    if isinstance(made, type) and issubclass(made, BaseModel):
        yield from (it for it in made.__mro__ if issubclass(it, BaseModel) and it not in (BaseModel, RootModel))
        for field in made.model_fields.values():
            yield from models_of(field.annotation)
    else:
        yield from models_of(made)


def models_of(annotation: Any) -> Iterator[Any]:
    """The models that this annotation names."""
    if get_origin(annotation) is Literal:
        return
    if isinstance(annotation, type) and not get_args(annotation):
        yield from (it for it in (annotation,) if issubclass(it, BaseModel))
    for inner in get_args(annotation):
        yield from models_of(inner)


def is_model(name: str) -> bool:
    return isinstance(getattr(schema, name), type)


def depth(name: str) -> int:
    return len(getattr(schema, name).__mro__) if is_model(name) else 0


def declared(name: str) -> Iterator[str]:
    """The lines that declare this name."""
    made = getattr(schema, name)
    if not is_model(name):
        yield f"{name}: TypeAlias = {written(made)}"
        return
    base = made.__bases__[0]
    inherited = {} if base in (BaseModel, RootModel) else dict(fields(base))
    own = {field: line for field, line in fields(made) if inherited.get(field) != line}
    yield f"class {name}({base.__name__}):{'' if own else ' ...'}"
    yield from (f"    {field}: {line}" for field, line in own.items())


def fields(model: Any) -> Iterator[tuple[str, str]]:
    """The fields of a model: name, and annotation with its default."""
    for field in model.model_fields.values():
        is_tag = field.name in model.model_plan().tags
        yield field.name, written(field.annotation) + ("" if field.required and not is_tag else " = ...")


def written(annotation: Any) -> str:
    """An annotation as source text."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Any:
        return "Any"
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, sorted(arguments)))}]".replace("'", '"')
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(written, arguments)))
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(written, arguments))}]"
    return str(annotation.__name__)


def is_current() -> bool:
    """Whether the stub has the same declarations; how its lines are broken does not count."""
    return ast.dump(ast.parse(STUB.read_text())) == ast.dump(ast.parse(text()))


def main() -> None:
    if STUB.exists() and is_current():
        return
    if "--check" in sys.argv:
        sys.exit(f"{STUB.name} is not up to date: run python tools/compat_stub.py")
    STUB.write_text(text())


if __name__ == "__main__":
    main()
