"""`FunctionTool`: a function of Python as a tool of a model, by its name, its docstring and its annotations."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from accord.arguments import check_callable
from accord_tools.coder.model import Json, ToolSpec
from accord_tools.coder.tool_definition import schema_of


class FunctionTool:
    """A function that a model may call. A plain `def` runs in a thread."""

    def __init__(self, function: Callable[..., Any]) -> None:
        check_callable("serve(tools=...)", function)
        self.name: str = function.__name__
        self._function = function
        self._arguments = msgspec.defstruct(self.name, _fields(function), forbid_unknown_fields=True)

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model knows it."""
        return ToolSpec(self.name, inspect.getdoc(self._function) or "", schema_of(self._arguments))

    async def call(self, arguments: str) -> object:
        """Call the function with arguments in JSON; raises `msgspec.ValidationError` if they do not fit."""
        given: Any = msgspec.json.decode(arguments or "{}", type=self._arguments)
        named: Json = {name: getattr(given, name) for name in self._arguments.__struct_fields__}
        if inspect.iscoroutinefunction(self._function):
            return await self._function(**named)
        return await asyncio.to_thread(self._function, **named)


def _fields(function: Callable[..., Any]) -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    """The parameters of a function as fields of a struct; a parameter without an annotation takes any value."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(
                f"serve(tools=...): {function.__name__}() has the parameter {parameter}, which a model cannot name; "
                "give each parameter a name of its own"
            )
        kind = hints.get(name, Any)
        fields.append((name, kind) if parameter.default is parameter.empty else (name, kind, parameter.default))
    return sorted(fields, key=len)  # a struct has its required fields first
