"""Writes docs/reference: every public name with its signature and docstring.

    python tools/reference.py            rewrite the pages
    python tools/reference.py --check    only say whether they are up to date
    python tools/reference.py --missing  list the members that have no docstring

The names are those of `accord`, `accord.sync`, `accord.http` and `accord.testing`. Signatures and docstrings are read
from the sources, so the pages are the same with every version of Python. The types of the protocol (`accord.v1`,
`accord.v2`) are not repeated: they have the names and fields of the official schema.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import re
import sys
import textwrap
import tomllib
from collections.abc import Container, Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, cast

import accord
import accord.testing
from accord.agent.plain_face import Face

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "reference"
PUBLIC_MODULES = ROOT / "packages" / "accord" / "public-modules.toml"
MOST_NAMES = 40
"""Names that a row of a module shows."""
WIDTH = 100
LONGEST_ALIAS = 120
"""Characters of a type that is written out where its name is private."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Topic(NamedTuple):
    file: str
    title: str
    about: str
    homes: tuple[str, ...]
    """Packages and modules below `accord` whose public names belong to this page."""


TOPICS = (
    Topic("agents", "Agents", "What agents are written with: `Agent`, and what its functions receive.", ("agent",)),
    Topic(
        "clients",
        "Clients",
        "What clients are written with: `connect`, `Client`, and the agent and sessions they hold.",
        ("client",),
    ),
    Topic(
        "sync",
        "Without async",
        "`accord.ask`, and `accord.sync`: what clients and agents are written with, as plain functions and objects.",
        ("sync",),
    ),
    Topic(
        "services",
        "Services",
        "What a client lends to agents: files, terminals, permission and forms.",
        ("host", "services"),
    ),
    Topic("stores", "Stores", "Where an agent keeps its sessions.", ("store",)),
    Topic(
        "http",
        "HTTP and WebSocket",
        "`accord.http`: serving agents, and reaching them (extra `http`).",
        ("http", "hosts", "confinement"),
    ),
    Topic("errors", "Errors", "Every exception that Accord raises on purpose.", ("errors",)),
    Topic("watching", "Traces and spans", "What records the wire.", ("trace", "spans")),
    Topic("testing", "Testing", "`accord.testing`: tools for tests of agents and clients.", ("testing",)),
    Topic("transports", "Transports", "What carries frames between two sides.", ("transports",)),
    Topic("messages", "Messages", "The low level: typed messages, their handlers, and the connection.", ("",)),
)
"""The first topic with a home of a name has it; the last one has what no other has."""

MODULES = """\
What the command line, the checker and the adapters use of the library beside the names of `accord`. Other programs may
use it, too: `from accord.trace import query`. Modules that are not in this table may change in any version."""

SCHEMA = """\
`accord.v1` and `accord.v2` are the types of the protocol. They have the names and fields of the
[official schema](https://agentclientprotocol.com/protocol/schema), in snake case;
`accord schema` prints them as JSON Schema.
"""

SPECIAL = ("__await__", "__aiter__", "__aenter__", "__call__", "__getitem__", "__contains__", "__iter__", "__len__")
"""Special methods that are a way to use an object, and how each reads."""

UNSIGNED = ("__await__", "__aiter__", "__aenter__", "__iter__", "__len__")
"""Those whose use says it all."""

USES = {
    "__await__": "await {it}",
    "__aiter__": "async for ... in {it}",
    "__aenter__": "async with {it}",
    "__call__": "{it}(...)",
    "__getitem__": "{it}[...]",
    "__contains__": "... in {it}",
    "__iter__": "for ... in {it}",
    "__len__": "len({it})",
}


class Public(NamedTuple):
    name: str
    """As users write it: `accord.Agent`, `accord.http.serve`."""
    value: Any
    home: str
    """The module that defines it."""


# The names


@cache
def public_names() -> tuple[Public, ...]:
    return tuple(
        Public(f"{package.__name__}.{name}", value, value.__module__)
        for package in (accord, accord.sync, accord.http, accord.testing)
        for name in sorted(package.__all__, key=str.lower)
        if not inspect.ismodule(value := getattr(package, name)) and name != "__version__"
    )


@cache
def public_ids() -> frozenset[int]:
    return frozenset(id(it.value) for it in public_names())


def topic_of(public: Public) -> Topic:
    parts = (public.name if public.name.startswith("accord.sync.") else public.home).split(".")[1:]
    return next((it for it in TOPICS if parts[:1] == [it.homes[0]] or parts[0] in it.homes), TOPICS[-1])


# The sources


@cache
def tree_of(module: str) -> ast.Module:
    file = importlib.import_module(module).__file__
    assert file is not None
    path = Path(file)
    stub = path.with_suffix(".pyi")
    tree: ast.Module = at_home(ast.parse((stub if stub.exists() else path).read_text()), module)
    return tree


def definition(module: str, name: str) -> ast.ClassDef | Function:
    for node in reversed(tree_of(module).body):  # overloads stand before what they describe
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    raise SystemExit(f"tools/reference.py: {module} does not define {name}")


def classes_of(public: Public) -> list[ast.ClassDef]:
    """The class and its private bases of ours, whose members are its own to a reader."""
    shown = {it.value for it in public_names() if it.value is not public.value}
    bases = [it for it in public.value.__mro__ if it.__module__.startswith("accord.") and it not in shown]
    found = [definition(it.__module__, it.__name__) for it in bases]
    return [it for it in found if isinstance(it, ast.ClassDef)]


# One name


def entry(public: Public) -> str:
    node = definition(public.home, public.value.__name__)
    if isinstance(node, ast.ClassDef):
        return "\n".join(of_class(public, node))
    return "\n".join([f"## `{public.name}`", "", signature(public.name, node), "", docstring(node)])


def of_class(public: Public, node: ast.ClassDef) -> Iterator[str]:
    yield from (f"## `{public.name}`", "", class_signature(public, node), "", docstring(node))
    bases = [it.__name__ for it in public.value.__mro__[1:] if it in {other.value for other in public_names()}]
    if bases:
        yield from (f"Base: `accord.{bases[0]}`.", "")
    seen: set[str] = set()
    members = [it for owner in classes_of(public) for it in members_of(owner)]
    texts = explanations(public)
    attributes = [it for it in members if not isinstance(it, Method)]
    rows = [it for it in attributes if it.name not in seen and not seen.add(it.name)]
    if rows:
        yield from ("| attribute | type | |", "|---|---|---|")
        for row in rows:
            yield f"| `{row.name}` | {code(row.type)} | {cell(texts.get(row.name, ''))} |"
        yield ""
    it = instance_name(node.name)
    explained = explained_by_bases(public)
    for member in members:
        if isinstance(member, Method) and member.node.name not in seen:
            seen.add(member.node.name)
            if ast.get_docstring(member.node) or member.node.name not in explained:
                yield from of_method(member, public.name, it, texts.get(member.node.name, ""))


def of_method(member: Method, owner: str, it: str, text: str) -> Iterator[str]:
    yield from (f"### `{member.heading(owner, it)}`", "")
    if member.node.name not in UNSIGNED:
        yield from (signature(member.called(owner, it), member.node, bound=member.bound), "")
    if text:
        yield fenced_code(text) + "\n"


def explanations(public: Public) -> dict[str, str]:
    """The text of each member; a member without one has that of the base class which it overrides."""
    texts: dict[str, str] = {}
    for member in (it for owner in classes_of(public) for it in members_of(owner)):
        is_method = isinstance(member, Method)
        text = ast.get_docstring(member.node) if is_method else member.text
        if text:
            texts.setdefault(member.node.name if is_method else member.name, text)
    return texts


def explained_by_bases(public: Public) -> set[str]:
    """The methods of public base classes: an override without a docstring does what its base says."""
    bases = [it for it in public_names() if it.value in public.value.__mro__[1:]]
    nodes = [it for base in bases for owner in classes_of(base) for it in members_of(owner)]
    return {it.node.name for it in nodes if isinstance(it, Method)}


def instance_name(name: str) -> str:
    """`Agent` is used as `agent`, `RemoteSession` as `session`."""
    return re.findall(r"[A-Z][a-z]*", name)[-1].lower()


class Attribute(NamedTuple):
    name: str
    type: str
    text: str


class Method(NamedTuple):
    node: Function
    static: bool
    bound: bool

    def called(self, owner: str, instance: str) -> str:
        return f"{owner if self.static else instance}.{self.node.name}"

    def heading(self, owner: str, instance: str) -> str:
        return USES.get(self.node.name, "").format(it=instance) or self.called(owner, instance)


def members_of(node: ast.ClassDef) -> Iterator[Attribute | Method]:
    for index, statement in enumerate(node.body):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if is_shown(statement):
                decorators = {ast.unparse(it) for it in statement.decorator_list}
                if decorators & {"property", "cached_property", "functools.cached_property"}:
                    yield Attribute(statement.name, annotation(statement.returns), ast.get_docstring(statement) or "")
                elif not any(it.endswith((".setter", "overload")) for it in decorators) or is_stub_of(statement):
                    static = bool(decorators & {"classmethod", "staticmethod"})
                    yield Method(statement, static, "staticmethod" not in decorators)
            case ast.AnnAssign(target=ast.Name(name)) if not name.startswith("_"):
                default = "" if statement.value is None else f" = {source(statement.value)}"
                yield Attribute(name, annotation(statement.annotation) + default, string_after(node.body, index))
            case ast.FunctionDef(name="__init__"):
                yield from set_in_init(statement)
            case _:
                pass


def is_stub_of(node: Function) -> bool:
    """Whether this is an overload with a docstring: in a stub, the first says what all do."""
    return "overload" in map(ast.unparse, node.decorator_list) and ast.get_docstring(node) is not None


def is_shown(node: Function) -> bool:
    return not node.name.startswith("_") or node.name in SPECIAL


def set_in_init(node: ast.FunctionDef) -> Iterator[Attribute]:
    """Attributes that `__init__` sets and explains."""
    arguments = {it.arg: annotation(it.annotation) for it in [*node.args.args, *node.args.kwonlyargs]}
    for index, statement in enumerate(node.body):
        match statement:
            case ast.AnnAssign(target=ast.Attribute(ast.Name("self"), name)):
                kind = annotation(statement.annotation)
            case ast.Assign(targets=[ast.Attribute(ast.Name("self"), name)], value=value):
                kind = arguments.get(value.id, "") if isinstance(value, ast.Name) else ""
            case _:
                continue
        text = string_after(node.body, index)
        if not name.startswith("_") and (text or name in arguments):
            yield Attribute(name, kind, text)


def string_after(body: list[ast.stmt], index: int) -> str:
    match body[index + 1 : index + 2]:
        case [ast.Expr(ast.Constant(str(text)))]:
            return inspect.cleandoc(text)
        case _:
            return ""


# How it is written


def class_signature(public: Public, node: ast.ClassDef) -> str:
    for owner in classes_of(public):
        for statement in owner.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                if is_made_by_us(public, statement):
                    return fenced_line(f"class {public.name}")
                return signature(f"class {public.name}", statement, bound=True, result=False)
    fields = [it for it in node.body if isinstance(it, ast.AnnAssign)]
    if fields and not any("Protocol" in ast.unparse(it) for it in node.bases):
        return fenced(f"class {public.name}", [source(it) for it in fields if is_argument(it)], "")
    return fenced_line(f"class {public.name}")


HANDED_OUT = {"RemoteAgent", "RemoteSession", "RemoteSubagent", "Reply", "Suggestions"}
"""What `connect`, and the objects that it gives, make for their callers."""


def is_made_by_us(public: Public, init: ast.FunctionDef) -> bool:
    """Whether only Accord makes such objects: handed out, or the first argument is of a class without a page."""
    if public.value.__name__ in HANDED_OUT or issubclass(public.value, Face):
        return True
    arguments = [it for it in (*init.args.posonlyargs, *init.args.args) if it.arg != "self"]
    if not arguments or arguments[0].annotation is None:
        return False
    named = {it.id for it in ast.walk(arguments[0].annotation) if isinstance(it, ast.Name)}
    for cls in public.value.__mro__:
        imports = imports_of(cls.__module__) if cls.__module__.startswith("accord.") else {}
        for home, name in map(imports.__getitem__, named & imports.keys()):
            found = getattr(importlib.import_module(home), name, None) if home.startswith("accord.") else None
            if isinstance(found, type) and not is_public(found):
                return True
    return False


def is_public(cls: type[Any]) -> bool:
    """Whether a program can name this class: it is not ours, or a package of ours offers it."""
    if not cls.__module__.startswith("accord.") or hasattr(importlib.import_module(cls.__module__), "__path__"):
        return True
    modules = ("accord", cls.__module__, cls.__module__.rpartition(".")[0])
    return any(cls.__name__ in getattr(importlib.import_module(it), "__all__", ()) for it in modules)


def is_argument(node: ast.AnnAssign) -> bool:
    return isinstance(node.target, ast.Name) and not node.target.id.startswith("_")


def signature(name: str, node: Function, *, bound: bool = False, result: bool = True) -> str:
    if any(ast.unparse(it).startswith("with_parameters_of(") for it in node.decorator_list):
        connect = definition("accord.client.connect", "connect")
        arguments = connect.args if not isinstance(connect, ast.ClassDef) else node.args
    else:
        arguments = node.args
    if ast.unparse(node.returns or node) == "ConnectionBlock" and not node.decorator_list:  # not the one of accord.sync
        return fenced(f"async with {name}", list(parameters(node.args, bound=bound)), " as value  # RemoteAgent")
    if any(ast.unparse(it).endswith("asynccontextmanager") for it in node.decorator_list):
        return fenced(f"async with {name}", list(parameters(node.args, bound=bound)), entered(node))
    returns = f" -> {annotation(node.returns)}" if result and node.returns is not None else ""
    start = "async def " if isinstance(node, ast.AsyncFunctionDef) else "" if name.startswith("class ") else "def "
    return fenced(start + name, list(parameters(arguments, bound=bound)), returns)


def entered(node: Function) -> str:
    """What the block of a context manager gets, as its generator's annotation says."""
    match node.returns:
        case ast.Subscript(slice=ast.Tuple(elts=[kind, *_])) | ast.Subscript(slice=kind):
            return "" if source(kind) == "None" else f" as value  # {source(kind)}"
        case _:
            return ""


def parameters(arguments: ast.arguments, *, bound: bool) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for index, (it, default) in enumerate(zip(positional, defaults, strict=True)):
        if not (bound and index == 0):
            yield parameter(it, default)
        if arguments.posonlyargs and index + 1 == len(arguments.posonlyargs) and not (bound and index == 0):
            yield "/"
    if arguments.vararg:
        yield f"*{parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for it, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield parameter(it, default)
    if arguments.kwarg:
        yield f"**{parameter(arguments.kwarg, None)}"


def parameter(it: ast.arg, default: ast.expr | None) -> str:
    kind = f": {annotation(it.annotation)}" if it.annotation else ""
    if default is None:
        return it.arg + kind
    return f"{it.arg}{kind}{' = ' if kind else '='}{source(default)}"


def annotation(node: ast.expr | None) -> str:
    return "" if node is None else source(node)


def source(node: ast.AST) -> str:
    """The node as a reader can understand it without our sources: without the names of our constants and aliases."""
    text = ast.unparse(Spelled().visit(copy.deepcopy(node)))
    return text if '"' in text else text.replace("'", '"')


class Spelled(ast.NodeTransformer):
    """Writes out our constants and aliases, and remembers the classes that are left."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        home, name = defined_at(getattr(node, "home", ""), node.id)
        if not home.startswith("accord") or home.startswith("accord.schema.v"):
            return node
        value: Any = getattr(importlib.import_module(home), name, None)
        if value is not None and (
            id(value) in public_ids() or (name in accord.updates.__all__ and getattr(accord.updates, name) is value)
        ):
            return node
        if isinstance(value, bool | int | float | str | bytes) or type(value) is tuple:
            return ast.parse(literal(cast("Any", value)), mode="eval").body
        assigned = assignment(home, name)
        if isinstance(assigned, ast.Constant) and isinstance(assigned.value, str):
            assigned = at_home(ast.parse(assigned.value, mode="eval"), home).body
        if isinstance(assigned, ast.Call) or inspect.isfunction(value):
            return node  # a type variable, a mark for what was not given, or what makes a default
        if assigned is not None and not home.startswith("accord.schema"):
            spelled = self.visit(copy.deepcopy(assigned))
            if len(ast.unparse(spelled)) <= LONGEST_ALIAS:
                return spelled
        left.add((home, name))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Leave the name of a generic alias: what it is an alias of has parameters."""
        if isinstance(node.value, ast.Name):
            home, name = defined_at(getattr(node.value, "home", ""), node.value.id)
            if home.startswith("accord"):
                left.add((home, name))
        else:
            node.value = self.visit(node.value)
        node.slice = self.visit(node.slice)
        return node


left: set[tuple[str, str]] = set()
"""The classes and aliases of ours in the signatures of a page, by module and name."""


def literal(value: object) -> str:
    """A constant as a reader would write it."""
    if type(value) is int and value >= 1 << 20 and value % (1 << 20) == 0:
        return f"{value >> 20} * 1024 * 1024"
    if type(value) is int and value >= 1 << 12 and value % (1 << 10) == 0:
        return f"{value >> 10} * 1024"
    return f"{value:_}" if type(value) is int else repr(value)


def at_home(tree: Any, module: str) -> Any:
    """The same tree, whose names are those of this module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.home = module  # type: ignore[attr-defined]
    return tree


@cache
def imports_of(module: str) -> dict[str, tuple[str, str]]:
    """The names that a module imports, also only for types, and where each comes from."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def defined_at(module: str, name: str) -> tuple[str, str]:
    """The module that defines what this name is in a module, and its name there; no module for a builtin."""
    if not module.startswith("accord"):
        return module, name
    defined = {it.name for it in tree_of(module).body if isinstance(it, ast.ClassDef | Function)}
    if name in defined or assignment(module, name) is not None:
        return module, name
    return defined_at(*imports_of(module)[name]) if name in imports_of(module) else ("", name)


@cache
def assignment(module: str, name: str) -> ast.expr | None:
    """What a module assigns to this name."""
    for node in tree_of(module).body:
        match node:
            case ast.Assign(targets=[*targets], value=value):
                if name in {it.id for target in targets for it in ast.walk(target) if isinstance(it, ast.Name)}:
                    return value
            case ast.AnnAssign(target=ast.Name(id), value=ast.expr() as value) if id == name:
                return value
            case _:
                pass
    return None


def fenced(name: str, arguments: list[str], after: str) -> str:
    line = f"{name}({', '.join(arguments)}){after}"
    if len(line) <= WIDTH:
        return fenced_line(line)
    rows = "".join(f"    {it},\n" for it in arguments)
    return fenced_line(f"{name}(\n{rows}){after}")


def fenced_line(text: str) -> str:
    return f"```py\n{text}\n```"


def docstring(node: ast.ClassDef | Function) -> str:
    return fenced_code(ast.get_docstring(node) or "") + "\n"


def fenced_code(text: str) -> str:
    """Code that stands indented below a blank line, doctests, and programs, as fenced blocks."""
    parts = re.split(r"((?:(?:\A|(?<=\n\n))(?: {4}|>>> ).*(?:\n+ {4}.*|\n(?!\n).*)*))", text)
    blocks = [
        fenced_line(textwrap.dedent(it).strip()) if it.startswith(("    ", ">>> ")) else fenced_programs(it.strip())
        for it in parts
    ]
    return "\n\n".join(it for it in blocks if it)


def fenced_programs(text: str) -> str:
    """Programs that are not indented: the formatter removes that from a docstring whose remainder is all code."""
    groups = ((found, "\n\n".join(it)) for found, it in groupby(text.split("\n\n"), is_program))
    return "\n\n".join(fenced_line(it) if found else it for found, it in groups)


def is_program(paragraph: str) -> bool:
    """Whether this is Python that calls something; no sentence is."""
    try:
        tree = ast.parse("async def program():\n" + textwrap.indent(paragraph, "    "))
    except SyntaxError:
        return False
    return any(isinstance(it, ast.Call) for it in ast.walk(tree))


def code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def cell(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split()).replace("|", "\\|")


# The pages


def generated() -> dict[Path, str]:
    names = list(public_names())
    places: dict[object, str] = {it.value: topic_of(it).file for it in names}
    pages: dict[Path, str] = {}
    by_topic: dict[Topic, list[Public]] = {}
    for topic in TOPICS:
        own = [name for name in names if topic_of(name) is topic]
        pages[PAGES / f"{topic.file}.md"], by_topic[topic] = page(topic, own, places)
    return {PAGES / "README.md": index(by_topic), PAGES / "modules.md": module_page(), **pages}


NOTICE = "<!-- Generated by tools/reference.py from docstrings and signatures; do not edit. -->\n"


def page(topic: Topic, names: list[Public], pages: dict[object, str]) -> tuple[str, list[Public]]:
    """The page of these names, and its names: these, and those of the classes that their users hold.

    `pages` is the page of each value that has one; what is new here is added.
    """
    left.clear()
    names, entries = list(names), list(map(entry, names))
    while more := sorted(held(entries, pages), key=lambda it: it.name.lower()):
        pages |= {it.value: topic.file for it in more}
        entries += map(entry, more)
        names += more
    text = "\n".join(entries).rstrip()
    return f"{NOTICE}\n# {topic.title}\n\n{topic.about}\n\n{text}\n{others(topic, text, pages)}", names


def held(entries: list[str], shown: Container[object]) -> Iterator[Public]:
    """The classes without an entry that attributes and results are of: users hold such objects."""
    types = [it for text in entries for it in re.findall(r"^\| `\w+` \| `(.+?)` \||\) -> (.+)$", text, re.MULTILINE)]
    words = set(re.findall(r"\w+", str(types)))
    for home, name in left:
        value = getattr(importlib.import_module(home), name)
        if name in words and isinstance(value, type) and value not in shown and value.__module__ == home:
            yield Public(name, value, home)


def others(topic: Topic, text: str, pages: Mapping[object, str]) -> str:
    """A table of the names in the signatures of these entries that have no entry here."""
    words = {it for code in re.findall(r"```py\n.*?```|`[^`\n]+`", text, re.DOTALL) for it in re.findall(r"\w+", code)}
    rows: list[str] = []
    for home, name in sorted(left, key=lambda it: it[1].lower()):
        value = getattr(importlib.import_module(home), name)
        elsewhere = pages.get(value) if isinstance(value, type) else None
        if name in words and elsewhere != topic.file:
            about = explanation(home, name).partition("\n")[0]
            if not about:
                raise SystemExit(f"tools/reference.py: {home}.{name} stands in a signature and needs a docstring")
            shown = f"[`{name}`]({elsewhere}.md#{anchor(name)})" if elsewhere else f"`{name}`"
            rows.append(f"| {shown} | `{home}` | {cell(about)} |\n")
    return (
        f"\n## Other names in these signatures\n\n| name | module | |\n|---|---|---|\n{''.join(rows)}" if rows else ""
    )


def explanation(home: str, name: str) -> str:
    """The docstring of a class, or the one below an alias."""
    body = tree_of(home).body
    for index, node in enumerate(body):
        match node:
            case ast.ClassDef() if node.name == name:
                return ast.get_docstring(node) or ""
            case ast.Assign(targets=[ast.Name(id)]) | ast.AnnAssign(target=ast.Name(id)) if id == name:
                return string_after(body, index)
            case _:
                pass
    return ""


def module_page() -> str:
    """The public modules beside `accord` itself: what each is for, and its names."""
    rows = [NOTICE, "# Public modules", "", MODULES, "", "| module | for | names |", "|---|---|---|"]
    for name in tomllib.loads(PUBLIC_MODULES.read_text(encoding="utf-8"))["public"]:
        tree = tree_of(name)
        about = (ast.get_docstring(tree) or "").partition("\n")[0]
        rows.append(f"| `{name}` | {cell(about)} | {', '.join(f'`{it}`' for it in names_in(name, tree))} |")
    return "\n".join(rows) + "\n"


def names_in(module: str, tree: ast.Module) -> list[str]:
    """The public names of a module; of a package that offers more than it can list, none."""
    listed = list(getattr(importlib.import_module(module), "__all__", ()))
    defined = [it.name for it in tree.body if isinstance(it, ast.ClassDef | Function)]
    return [it for it in listed or defined if not it.startswith("_")][:MOST_NAMES]


def index(names: Mapping[Topic, list[Public]]) -> str:
    about = "Every public name of `accord`, by topic. [Public modules](modules.md) are for tools of your own."
    lines = [NOTICE, "# Reference", "", about, ""]
    for topic in TOPICS:
        lines += [f"## [{topic.title}]({topic.file}.md)", "", "| name | |", "|---|---|"]
        for it in names[topic]:
            lines.append(f"| [`{it.name}`]({topic.file}.md#{anchor(it.name)}) | {cell(first_line(it))} |")
        lines.append("")
    return "\n".join([*lines, "## The types of the protocol", "", SCHEMA])


def first_line(public: Public) -> str:
    return (ast.get_docstring(definition(public.home, public.value.__name__)) or "").partition("\n")[0]


def anchor(name: str) -> str:
    """As GitHub makes it from a heading."""
    return name.replace(".", "").lower()


def missing() -> Iterator[str]:
    """The names on the pages that nothing explains."""
    for public in public_names():
        node = definition(public.home, public.value.__name__)
        if not ast.get_docstring(node):
            yield public.name
        if isinstance(node, ast.ClassDef):
            explained = {*explanations(public), *explained_by_bases(public), *UNSIGNED}
            members = (it for owner in classes_of(public) for it in members_of(owner))
            names = (it.node.name if isinstance(it, Method) else it.name for it in members)
            yield from (f"{public.name}.{name}" for name in dict.fromkeys(names) if name not in explained)


def main() -> int:
    if "--missing" in sys.argv[1:]:
        print(*missing(), sep="\n")
        return 0
    pages = generated()
    stale = sorted(set(PAGES.glob("*.md")) - pages.keys())
    outdated = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in [*outdated, *stale]:
            print(f"{path.relative_to(ROOT)} is not up to date; run: python tools/reference.py")
        return bool(outdated or stale)
    PAGES.mkdir(exist_ok=True)
    for path in outdated:
        path.write_text(pages[path])
    for path in stale:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
