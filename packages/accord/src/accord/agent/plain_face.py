"""`Face`: an object of an event loop, for use in threads; the base of the classes of `accord.sync`.

    class Tool(Elicits, of=tool.Tool, attributes="id title kind status"): ...

A face has the public members of the class `of`, with the same parameters and docstrings and without `async`. They are
made when the class is. How a member reaches the event loop follows from its kind:

    async def           `portal.wait`: a task in the loop, for whose end the thread waits
    async iterator      `portal.iterate`: such a task for each item
    async block         `portal.block`: such a task for its beginning, and one for its end
    property, def       `portal.read`: a call in the loop
    prompt, on          `portal.do`: a call in the loop that fails after the end of the connection

`attributes` are read without the loop, because they never change, or change at once; those that are `changing` are read
like properties. Members that the class defines itself, or lists in `without`, are not made.

Type checkers and the reference read the members in the stub beside the module, which `tools/sync_faces.py` writes.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from copy import copy
from functools import update_wrapper
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from accord.engine.handlers import Registrar, Registration
from accord.schema.extension import Extension

_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

_SPECIAL = {
    "__aiter__": "__iter__",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    **{it: it for it in ("__len__", "__iter__", "__contains__", "__getitem__", "_repr_markdown_")},
}
"""The special methods of a face, and their names without `async`."""


_FACES: dict[object, Callable[[Any, Any, str | None], Any]] = {}
"""The functions that make faces, by the class of the object."""


def face_of(held: Any, portal: Any, session: str | None = None) -> Any:
    """Return what a thread gets for this object: a face, if there is one for its class."""
    for cls in type(held).__mro__:
        if (make := _FACES.get(cls)) is not None:
            return make(held, portal, session)
    return held


class Face:
    """An object of an event loop and the way to it; its subclasses have the members of the object's class."""

    def __init__(self, portal: Any, held: Any, session: str | None = None) -> None:
        self._portal = portal
        """A `Portal` or an `AuthorThread`."""
        self._held = held
        self._session = session
        """The session whose questions a thread of a client answers while it waits here."""

    def __init_subclass__(
        cls, of: type[Any] | None = None, attributes: str = "", changing: str = "", without: str = ""
    ) -> None:
        super().__init_subclass__()
        if of is None:
            return
        _FACES[of] = cls._for
        cls.__doc__ = cls.__doc__ or _text(of)
        members: dict[str, Any] = {it: _Attribute(cls, it) for it in attributes.split()}
        members |= {it: _Attribute(cls, it, is_changing=True) for it in changing.split()}
        members |= _members(of)
        left_out = {*vars(cls), *without.split()}
        for name in (it for it in members if it not in left_out):
            setattr(cls, name, members[name])

    @classmethod
    def _for(cls, held: Any, portal: Any, session: str | None = None) -> Any:
        return cls(portal, held, session)

    def __repr__(self) -> str:
        return f"accord.sync.{self._held!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Face) and self._held is other._held

    def __hash__(self) -> int:
        return id(self._held)

    def _read(self, function: Callable[[], Any], *, copies: bool) -> Any:
        """Return the result of this call in the loop, or a copy of it, which the loop does not change."""
        return self._faced(self._portal.read(lambda: copy(function()) if copies else function()))

    def _faced(self, value: Any) -> Any:
        return self if value is self._held else face_of(value, self._portal, self._session)


def held_of(value: Any) -> Any:
    """Return the `async` object behind a face, for a method that takes it."""
    return value._held if isinstance(value, Face) else value


# Other values for threads


def _list(held: list[Any], portal: Any, session: str | None = None) -> list[Any]:
    return [face_of(it, portal, session) for it in held] if _have_faces(held) else held


def _dict(held: dict[Any, Any], portal: Any, session: str | None = None) -> dict[Any, Any]:
    if not _have_faces(held.values()):
        return held
    return {key: face_of(it, portal, session) for key, it in held.items()}


def _have_faces(values: Iterable[Any]) -> bool:
    """Whether objects of this class have faces, judged by the first; all are of one class."""
    return any(isinstance(_FACES.get(it), MethodType) for it in type(next(iter(values), None)).__mro__)


def _result(held: Awaitable[Any], portal: Any, session: str | None = None) -> Any:
    """Wait for the answer to a prompt with `output`."""
    return portal.wait(lambda: held, session)


def _registrar(held: Registrar[Any], portal: Any, _: str | None = None) -> Registrar[Any]:
    register: Callable[..., object] = held
    return Registrar(lambda handler: portal.do(lambda: register(handler)))


def _registration(held: Registration[Any], portal: Any, _: str | None = None) -> Registration[Any]:
    register: Callable[..., object] = held

    def registered(handler: Callable[..., Any]) -> Callable[[], None]:
        portal.do(lambda: register(handler))
        return lambda: portal.read(held.remove)

    return Registration(registered)


class ExtensionFace(Face):
    """An extension for threads. An author wrote its class, so its members are looked up on access."""

    def __getattr__(self, name: str) -> Any:
        value: Any = self._portal.read(lambda: getattr(self._held, name))
        if not inspect.ismethod(value):
            return copy(value) if type(value) in (list, dict) else self._faced(value)

        def call(*arguments: Any, **named: Any) -> Any:
            def begin() -> Any:
                return value(*arguments, **named)

            if inspect.isasyncgenfunction(value):
                return self._portal.iterate(begin, self._session)
            is_async = inspect.iscoroutinefunction(value)
            return self._portal.wait(begin, self._session) if is_async else self._portal.read(begin)

        return call


_FACES.update(
    {
        list: _list,
        dict: _dict,
        Awaitable: _result,
        Registrar: _registrar,
        Registration: _registration,
        Extension: ExtensionFace._for,
    }
)


# Making the members


def _members(of: type[Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in vars(of).items():
        if name.startswith("_") and name not in _SPECIAL:
            continue
        if isinstance(value, property):
            made[name] = _property(name, value)
        elif isinstance(value, FunctionType):
            made[_SPECIAL.get(name, name)] = _method(name, value)
    return made


def _property(name: str, value: property) -> property:
    plain = _without_async(value.fget)
    copies = _is_copied(plain)

    def read(self: Face) -> Any:
        return self._read(lambda: getattr(self._held, name), copies=copies)

    return property(update_wrapper(read, plain))


def _method(name: str, function: FunctionType) -> Any:
    result = str(function.__annotations__.get("return"))
    plain = _without_async(function)
    copies = _is_copied(plain)

    def call(self: Face, arguments: tuple[Any, ...], named: dict[str, Any]) -> Callable[[], Any]:
        return lambda: function(self._held, *map(held_of, arguments), **{it: held_of(named[it]) for it in named})

    def wait(self: Face, *arguments: Any, **named: Any) -> Any:
        return self._faced(self._portal.wait(call(self, arguments, named), self._session))

    def read(self: Face, *arguments: Any, **named: Any) -> Any:
        return self._read(call(self, arguments, named), copies=copies)

    def do(self: Face, *arguments: Any, **named: Any) -> Any:
        return self._faced(self._portal.do(call(self, arguments, named)))

    def remover(self: Face, *arguments: Any, **named: Any) -> Any:
        remove = self._portal.read(call(self, arguments, named))
        return lambda: self._portal.read(remove)

    def iterate(self: Face, *arguments: Any, **named: Any) -> Any:
        return self._portal.iterate(call(self, arguments, named), self._session)

    def block(self: Face, *arguments: Any, **named: Any) -> Any:
        return self._portal.block(call(self, arguments, named), self._faced)

    def itself(self: Face) -> Any:
        return self

    def items(self: Face) -> Iterator[Any]:
        return iter(self._read(lambda: list(self._held), copies=False))

    ways: dict[str, Any] = {"__aiter__": itself, "__iter__": items, "on": do, "prompt": do}
    if name in ways:
        way = ways[name]
    elif str(plain.__annotations__["return"]).startswith("AbstractContextManager["):
        way = block
    elif result.startswith(("AsyncIterator[", "AsyncGenerator[")):
        way = iterate
    elif inspect.iscoroutinefunction(function) or result.startswith("Coroutine["):
        way = wait
    else:
        way = remover if result == "Callable[[], None]" else read
    update_wrapper(way, plain)
    way.__annotations__ = plain.__annotations__  # Python 3.14 copies `__annotate__` in their place
    return way


def _is_copied(function: FunctionType) -> bool:
    """Whether the loop may continue to change what this returns."""
    return str(function.__annotations__["return"]).startswith(("list[", "dict["))


def _without_async(function: Any) -> FunctionType:
    """Return a plain function with the parameters of this one, for `inspect.signature` and `help`. It is never
    called.
    """
    inner: Any = inspect.unwrap(function)
    plain = FunctionType(
        inner.__code__.replace(co_flags=inner.__code__.co_flags & ~_ASYNC),
        inner.__globals__,
        inner.__name__,
        inner.__defaults__,
        inner.__closure__,
    )
    plain.__kwdefaults__, plain.__qualname__ = inner.__kwdefaults__, inner.__qualname__
    result = re.sub(r"^Coroutine\[Any, Any, (.*)\]$", r"\1", str(inner.__annotations__.get("return")))
    if inner is not function:
        result = result.replace("AsyncGenerator[", "AbstractContextManager[")
    result = re.sub(r"\b(Abstract)?Async(Iterator|Generator|ContextManager)\b", r"\1\2", result)
    if result == "ExtensionT":  # whose class says `async`
        result = "Any"
    plain.__annotations__ = {**inner.__annotations__, "return": result}
    plain.__doc__ = _text(inner)
    return plain


def _text(explained: Any) -> str:
    """Return the docstring without its doctest, whose programs use `async`."""
    return re.sub(r"\n\n +>{3} .*", "", explained.__doc__ or "", flags=re.DOTALL)


class _Attribute:
    """An attribute of the object. Its docstring cannot be read at run time, so it is read from the stub."""

    def __init__(self, owner: type[Face], name: str, *, is_changing: bool = False) -> None:
        self._owner = owner
        self._name = name
        self._is_changing = is_changing

    def __get__(self, face: Face | None, _: object = None) -> Any:
        if face is None:
            return self
        value = getattr(face._held, self._name)
        if self._is_changing:
            copies = isinstance(value, list | dict)
            return face._read(lambda: getattr(face._held, self._name), copies=copies)
        return face._faced(value)

    def __set__(self, face: Face, _: object) -> None:
        raise AttributeError(f"attribute {self._name!r} of {type(face).__name__!r} objects cannot be set")

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        stub = Path(inspect.getfile(self._owner)).with_suffix(".pyi")
        with suppress(OSError):  # a program that was packed without stubs
            for cls in ast.parse(stub.read_text(encoding="utf-8")).body:
                if isinstance(cls, ast.ClassDef) and cls.name == self._owner.__name__:
                    found = (it for it in cls.body if isinstance(it, ast.FunctionDef) and it.name == self._name)
                    return next(map(ast.get_docstring, found), None)
        return None
