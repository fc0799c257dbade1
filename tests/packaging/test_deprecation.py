"""Deprecated functions, classes, parameters and names of modules warn their user, at the user's line."""

import ast
import asyncio
import inspect
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import msgspec
import pytest

import accord
from accord.deprecation import Successor, deprecated, deprecated_names, deprecated_parameter

SOURCE = Path(accord.__file__).parent


@deprecated("example.old", goes_in="9.0.0", instead="example.new")
def old(number: int) -> int:
    """Doubles a number."""
    return 2 * number


@deprecated("example.Old", goes_in="9.0.0", instead="example.New")
class Old:
    """Holds a number."""

    def __init__(self, number: int) -> None:
        self.number = number


@deprecated_parameter("path", goes_in="9.0.0", new="folder")
def opened(folder: str, mode: str = "r") -> str:
    return f"{folder} {mode}"


@deprecated_parameter("colour", goes_in="9.0.0", instead="leave it out")
def drawn(colour: str = "red") -> str:
    return colour


@pytest.fixture
def example(monkeypatch):
    """A module with a new name and an old one."""
    module = types.ModuleType("example")
    module.Event = object()
    module.__getattr__ = deprecated_names("example", {"OldEvent": Successor("Event", goes_in="9.0.0")})
    monkeypatch.setitem(sys.modules, "example", module)
    return module


def warned(use):
    """What a use gives, and the one warning, which names the line of the use."""
    with pytest.warns(DeprecationWarning, match="is deprecated") as caught:
        value = use()
    [warning] = caught
    assert warning.filename == __file__
    assert warning.lineno == use.__code__.co_firstlineno
    return value, str(warning.message)


def test_a_deprecated_function_works_and_names_its_successor():
    assert warned(lambda: old(2)) == (
        4,
        "example.old is deprecated and will be removed in 9.0.0: use example.new",
    )
    assert old.__doc__ == "Doubles a number."


def test_a_deprecated_coroutine_function_warns_when_it_is_called():
    @deprecated("example.wait", goes_in="9.0.0", instead="example.pause")
    async def wait() -> int:
        return 1

    coroutine, text = warned(lambda: wait())
    assert asyncio.run(coroutine) == 1
    assert text.endswith("use example.pause")
    assert inspect.iscoroutinefunction(wait) or sys.version_info < (3, 12)


def test_making_an_object_of_a_deprecated_class_warns():
    made, text = warned(lambda: Old(3))
    assert (made.number, type(made), Old.__doc__) == (3, Old, "Holds a number.")
    assert text == "example.Old is deprecated and will be removed in 9.0.0: use example.New"


def test_deriving_from_a_deprecated_class_warns_once_and_not_for_each_object():
    derived, text = warned(lambda: type("Derived", (Old,), {}))
    assert "use example.New" in text
    with warnings.catch_warnings(action="error"):
        assert derived(3).number == 3


def test_a_deprecated_class_still_calls_its_own_hook_for_subclasses():
    names = []

    @deprecated("example.Base", goes_in="9.0.0", instead="example.New")
    class Base:
        def __init_subclass__(cls, *, word: str) -> None:
            names.append((cls.__name__, word))

    with pytest.warns(DeprecationWarning, match=r"use example\.New"):

        class Derived(Base, word="hello"):
            pass

    assert names == [("Derived", "hello")]


def test_a_struct_is_refused_because_it_would_not_warn():
    class Point(msgspec.Struct):
        x: int

    with pytest.raises(TypeError, match=r"Point is a msgspec\.Struct; deprecate its name with deprecated_names"):
        deprecated("example.Point", goes_in="9.0.0", instead="example.Place")(Point)


def test_a_renamed_parameter_reaches_the_function_under_its_new_name():
    value, text = warned(lambda: opened(path="/a", mode="w"))
    assert value == "/a w"
    assert text == "parameter 'path' of opened() is deprecated and will be removed in 9.0.0: use 'folder'"


def test_the_new_name_of_a_parameter_does_not_warn():
    with warnings.catch_warnings(action="error"):
        assert opened("/a") == opened(folder="/a") == "/a r"


def test_a_parameter_under_both_names_is_an_error():
    with pytest.raises(TypeError, match=r"opened\(\) got 'path' and 'folder', which are the same; give only 'folder'"):
        opened(path="/a", folder="/b")


def test_a_parameter_without_a_successor_still_works_and_says_what_to_do():
    value, text = warned(lambda: drawn(colour="blue"))
    assert value == "blue"
    assert text.endswith("will be removed in 9.0.0: leave it out")


def test_a_deprecated_parameter_needs_a_successor_or_advice():
    with pytest.raises(TypeError, match="takes either new= or instead="):
        deprecated_parameter("path", goes_in="9.0.0")


def test_a_deprecated_name_of_a_module_is_its_successor(example):
    value, text = warned(lambda: example.OldEvent)
    assert value is example.Event
    assert text == "example.OldEvent is deprecated and will be removed in 9.0.0: use example.Event"


def test_importing_a_deprecated_name_warns_at_the_import(example):
    with pytest.warns(DeprecationWarning, match=r"use example\.Event") as caught:
        from example import OldEvent
    assert OldEvent is example.Event
    assert {warning.filename for warning in caught} == {__file__}


def test_a_name_that_a_module_does_not_have_is_still_an_attribute_error(example):
    with pytest.raises(AttributeError, match="module 'example' has no attribute 'Evnt'"):
        _ = example.Evnt


def test_other_names_of_a_module_are_loaded_as_before():
    get = deprecated_names("example", {}, load=lambda name: f"loaded {name}")
    assert get("Agent") == "loaded Agent"


def test_python_shows_a_warning_once_for_each_line(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from accord.deprecation import deprecated\n"
        "@deprecated('example.old', goes_in='9.0.0', instead='example.new')\n"
        "def old(): pass\n"
        "for _ in range(3): old()\n"
        "old()\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, timeout=60)
    assert re.findall(r"program\.py:(\d+): DeprecationWarning: example\.old is deprecated", done.stderr) == ["4", "5"]


def overdue(source: str, version: str) -> list[str]:
    """The versions in a source that name the end of something, and that have come."""
    given = [
        node.value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.keyword) and node.arg == "goes_in" and isinstance(node.value, ast.Constant)
    ]
    return [it for it in given if numbers(it) <= numbers(version)]


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def test_nothing_deprecated_is_older_than_the_version_that_removes_it():
    assert overdue("f(goes_in='0.9.0'); f(goes_in='0.10.0')", "0.9.0") == ["0.9.0"]
    found = {path.name: overdue(path.read_text(), accord.__version__) for path in SOURCE.rglob("*.py")}
    assert {name: versions for name, versions in found.items() if versions} == {}
