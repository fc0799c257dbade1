"""Deprecated names and parameters: a warning that names the replacement and the version without the old name.

    @deprecated("accord.old", goes_in="0.4.0", instead="accord.new")
    def old(): ...

    @deprecated_parameter("path", goes_in="0.4.0", new="folder")
    def open_folder(folder): ...

    __getattr__ = deprecated_names(__name__, {"Event": Successor("TraceEvent", goes_in="0.4.0")}, __getattr__)

The warning is a DeprecationWarning that points at the line of the caller. Python shows it once for each such line, or
raises it with `-W error`. This module keeps no record of its own of what was shown: a test that runs second would
otherwise see no warning. The policy is in docs/policies.md.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

T = TypeVar("T", bound=Callable[..., Any])


class Successor(NamedTuple):
    """What replaces a name of a module."""

    name: str
    """The new name, in the same module."""
    goes_in: str
    """The first version without the old name."""


def deprecated(name: str, *, goes_in: str, instead: str) -> Callable[[T], T]:
    """Warn each caller of a function, or each maker of an object of a class.

    `name` and `instead` are written as users write them. A `msgspec.Struct` cannot be decorated: `deprecated_names`
    warns of its name.
    """
    text = message(name, goes_in, f"use {instead}")

    def decorate(target: T) -> T:
        if inspect.isclass(target):
            return cast("T", _warning_class(target, text))

        @wraps(target)
        def call(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return target(*args, **kwargs)

        return _alike(call, target)

    return decorate


def deprecated_parameter(name: str, *, goes_in: str, new: str = "", instead: str = "") -> Callable[[T], T]:
    """Warn each caller of a function who gives a parameter by its old name.

    With `new`, the value is handed on under that name. Without it the function still takes the parameter, and
    `instead` says what to do.
    """
    if bool(new) == bool(instead):
        raise TypeError(f"deprecated_parameter({name!r}) takes either new= or instead=")

    def decorate(function: T) -> T:
        called = f"{function.__qualname__}()"
        text = message(f"parameter {name!r} of {called}", goes_in, f"use {new!r}" if new else instead)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if name in kwargs:
                if new in kwargs:
                    raise TypeError(f"{called} got {name!r} and {new!r}, which are the same; give only {new!r}")
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                kwargs[new or name] = kwargs.pop(name)
            return function(*args, **kwargs)

        return _alike(call, function)

    return decorate


def deprecated_names(
    module: str, names: Mapping[str, Successor], load: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose names have successors (PEP 562).

    `load` is the `__getattr__` that the module has otherwise, such as `accord.loading.on_first_use(...)`.
    """

    def get(name: str) -> Any:
        if (successor := names.get(name)) is not None:
            text = message(f"{module}.{name}", successor.goes_in, f"use {module}.{successor.name}")
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return getattr(sys.modules[module], successor.name)
        if load is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return load(name)

    return get


def message(name: str, goes_in: str, instead: str) -> str:
    """The text of a warning.

    >>> message("accord.Event", "0.4.0", "use accord.TraceEvent")
    'accord.Event is deprecated and will be removed in 0.4.0: use accord.TraceEvent'
    """
    return f"{name} is deprecated and will be removed in {goes_in}: {instead}"


def _alike(call: Callable[..., Any], function: T) -> T:
    """The wrapper, which is a coroutine function if the function is one."""
    if inspect.iscoroutinefunction(function) and sys.version_info >= (3, 12):
        call = inspect.markcoroutinefunction(call)
    return cast("T", call)


def _warning_class(cls: type[Any], text: str) -> type[Any]:
    """The class, which warns when an object of it is made or a class derives from it."""
    if hasattr(cls, "__struct_fields__"):
        raise TypeError(f"{cls.__name__} is a msgspec.Struct; deprecate its name with deprecated_names")
    make, derive = cls.__init__, vars(cls).get("__init_subclass__")

    @wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is cls:
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        make(self, *args, **kwargs)

    def derived(subclass: type[Any], /, **kwargs: Any) -> None:
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        if derive is None:
            super(cls, subclass).__init_subclass__(**kwargs)
        else:
            derive.__func__(subclass, **kwargs)

    changed: Any = cls
    changed.__init__, changed.__init_subclass__ = made, classmethod(cast("Any", derived))
    return cls
