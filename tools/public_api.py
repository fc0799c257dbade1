"""Lists what programs can rely on: public names, their parameters, extras, commands and options.

    python tools/public_api.py                   print the list as JSON
    python tools/public_api.py --freeze          write it to tests/packaging/api/VERSION.json, before a release
    python tools/public_api.py --removed FILE    say what of a frozen list is not there any more

A name has its parameters, or null if it takes none. `timeout=` has a default, and after `*` parameters are given by
their names only. The rule is in docs/policies.md: a later version keeps every name of an earlier one, keeps its
parameters in their order, and demands no more; what goes has a row in the table of that page first.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

import accord
from accord_tools.cli.command_table import actions_of, commands_for, parser_of

ROOT = Path(__file__).parent.parent
FROZEN = ROOT / "tests" / "packaging" / "api"
PACKAGES = (
    "accord",
    "accord_adapters",
    "accord_check",
    "accord_tools.cli.command",
    "accord.http",
    "accord.metrics",
    "accord.sync",
    "accord.testing",
    "accord.v1",
    "accord.v2",
)
ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| (?P<version>\d+\.\d+\.\d+) \|", re.MULTILINE)
"""A row of the table of names that went: the name as the lists write it, and the version without it."""

GIVEN = """
Chain ChosenAgent CommandResult Connection ConnectionBlock Context Decision Elicited ElicitedUrl FormQuestion Hop
LinkQuestion Login MirroredDocument ModelAnswer ModelCall ModelUsage OpenDocument Outcome PermissionQuestion
PlanDocument Provider RemoteAgent RemoteClient RemoteSession RemoteSubagent RemoteTerminal Reply Restarted
RunningCompaction SentMessage ServedSession Session Statistics Subagent Suggestion SuggestionRequest Suggestions
Terminal Tool Turn TurnPlan TypedReply
"""
"""Classes whose objects Accord makes: what they are made with is its own affair."""

Api = Mapping[str, str | None]


def public_api() -> dict[str, str | None]:
    """Everything that programs can rely on, sorted."""
    found: dict[str, str | None] = dict(extras())
    found.update(options(parser_of(commands_for()), "accord"))
    for package in PACKAGES:
        found.update(names(package))
    return dict(sorted(found.items()))


def extras() -> Iterator[tuple[str, None]]:
    for path in sorted(ROOT.glob("packages/*/pyproject.toml")):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for extra in project["optional-dependencies"]:
            yield f"{project['name']}[{extra}]", None


def options(parser: argparse.ArgumentParser, command: str) -> Iterator[tuple[str, None]]:
    """The commands and their options: `accord run --allow`."""
    for action in actions_of(parser):
        for option in action.option_strings:
            yield f"{command} {option}", None
        for word, inner in commands(action).items():
            yield f"{command} {word}", None
            yield from options(inner, f"{command} {word}")


def commands(action: argparse.Action) -> dict[str, argparse.ArgumentParser]:
    """The commands that an action of a parser stands for; none for an ordinary option."""
    choices: object = action.choices
    found = cast("dict[str, object]", choices) if isinstance(choices, dict) else {}
    return {word: inner for word, inner in found.items() if isinstance(inner, argparse.ArgumentParser)}


def names(package: str) -> Iterator[tuple[str, str | None]]:
    path, _, last = package.rpartition(".")
    is_version = last in ("v1", "v2")
    module: Any = getattr(accord, last) if path and is_version else importlib.import_module(package)
    for name in getattr(module, "__all__", None) or dir(module):
        try:
            value = getattr(module, name)
        except accord.AccordError:  # a module that needs an extra, which need not be here
            yield f"{package}.{name}", None
            continue
        if inspect.isclass(value):
            yield from of_class(f"{package}.{name}", value)
        else:
            yield f"{package}.{name}", parameters(value)


def of_class(name: str, cls: type[Any]) -> Iterator[tuple[str, str | None]]:
    made_with = None if cls.__name__ in GIVEN.split() else parameters(cls)
    yield name, made_with
    named = {word.removesuffix("=") for word in (made_with or "").split(", ")}
    fields = {field for field in getattr(cls, "__struct_fields__", ()) if field in named}
    for member in sorted({*own_members(cls), *attributes(cls)} - fields):
        value: Any = inspect.getattr_static(cls, member, None)
        function: Any = getattr(value, "__func__", value)  # of a class method or a static one
        yield f"{name}.{member}", parameters(function) if inspect.isfunction(function) else None


def own_members(cls: type[Any]) -> Iterator[str]:
    """The public members that our classes define; those of Python's own change with its version."""
    for base in cls.__mro__:
        if base.__module__.startswith("accord"):
            yield from (member for member in vars(base) if not member.startswith("_"))


def attributes(cls: type[Any]) -> Iterator[str]:
    """The public attributes that `__init__` sets."""
    for base in cls.__mro__:
        method = vars(base).get("__init__")
        if base.__module__.startswith("accord") and inspect.isfunction(method):
            try:
                tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
            except OSError:  # made by a decorator: it has no text
                continue
            for node in ast.walk(tree):
                match node:
                    case ast.Attribute(value=ast.Name("self"), attr=name, ctx=ast.Store()) if name[0] != "_":
                        yield name
                    case _:
                        pass


def parameters(value: Any) -> str | None:
    """The names of the parameters, in the form of the lists; None for what cannot be called."""
    if not callable(value):
        return None
    try:
        given = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):  # an alias of types, or a class of Python's own
        return None
    words: list[str] = []
    for it in given:
        if it.kind is it.KEYWORD_ONLY and "*" not in words and not any(word[0] == "*" for word in words):
            words.append("*")
        stars = {it.VAR_POSITIONAL: "*", it.VAR_KEYWORD: "**"}.get(it.kind, "")
        words.append(f"{stars}{it.name}{'' if it.default is it.empty else '='}")
    return ", ".join(words)


# What a later version has to keep


def removed(before: Api, now: Api) -> Iterator[str]:
    """What of an earlier version is not there any more: `accord.Agent`, or `accord.connect timeout`."""
    for name, given in before.items():
        if name not in now:
            yield name
        elif given is not None:
            yield from (f"{name} {parameter}" for parameter in changed(given, now[name] or ""))


def changed(before: str, now: str) -> Iterator[str]:
    """The parameters that went, moved to another place, or are demanded now."""
    old, new = parsed(before), parsed(now)
    places = by_place(new)
    for place, name in enumerate(by_place(old)):
        if places[place : place + 1] != [name]:
            yield name
    by_name = [name for name in old if name not in by_place(old)]
    yield from (name for name in by_name if name not in new and name != "*")
    yield from (name for name, is_demanded in new.items() if is_demanded and not old.get(name))


def parsed(given: str) -> dict[str, bool]:
    """The parameters, and whether each has to be given."""
    words = given.split(", ") if given else []
    return {word.removesuffix("="): word[0] != "*" and not word.endswith("=") for word in words}


def by_place(given: Mapping[str, bool]) -> list[str]:
    """The parameters that can be given by their place."""
    return list(takewhile(lambda name: name[0] != "*", given))


def allowed(page: str) -> set[str]:
    """The names in the table of a page that say in which version they went."""
    return {row["name"] for row in ROW.finditer(page)}


def main(words: list[str]) -> int:
    match words:
        case []:
            print(written(public_api()), end="")
        case ["--freeze"]:
            FROZEN.mkdir(exist_ok=True)
            (FROZEN / f"{accord.__version__}.json").write_text(written(public_api()), encoding="utf-8")
        case ["--removed", file]:
            gone = list(removed(json.loads(Path(file).read_text(encoding="utf-8")), public_api()))
            print(*gone, sep="\n")
            return bool(gone)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


def written(api: Api) -> str:
    """One name a line, so that a change of one is a change of one line."""
    return json.dumps(api, indent=0) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
