"""The names: every public name of the official SDK is here, with the same parameters."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import acp
import pytest

from accord.compat import acp as ours
from accord.compat.acp import schema
from accord.compat.acp.listing import NAMES

MODULES = [
    "core",
    "helpers",
    "interfaces",
    "exceptions",
    "meta",
    "stdio",
    "transports",
    "connection",
    "contrib",
    "http",
    "http.protocol",
    "http.asgi",
    "ws",
]
MODULES += ["ws.client", "ws.server"]
OLDER = {"AgentSideConnection": "run_agent", "ClientSideConnection": "connect_to_agent"}


def test_the_public_names_are_those_of_the_official_sdk():
    assert sorted(ours.__all__) == sorted(acp.__all__)
    assert all(getattr(ours, name) is not None for name in ours.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_the_public_names_of_the_official_one(module):
    theirs = importlib.import_module(f"acp.{module}")
    mine = importlib.import_module(f"accord.compat.acp.{module}")
    names = getattr(theirs, "__all__", None) or [name for name in vars(theirs) if name.isupper()]
    assert [name for name in names if not hasattr(mine, name)] == []


@pytest.mark.parametrize("name", sorted(name for name in acp.__all__ if inspect.isfunction(getattr(acp, name))))
def test_a_function_has_the_parameters_of_the_official_one(name):
    assert parameters(getattr(ours, name)) == parameters(getattr(acp, name))


@pytest.mark.parametrize("side", ["Agent", "Client"])
def test_the_methods_of_a_side_have_the_parameters_of_the_official_ones(side):
    theirs, mine = getattr(acp, side), getattr(ours, side)
    methods = [name for name, it in vars(theirs).items() if inspect.isfunction(it) and not name.startswith("_")]
    assert len(methods) > 10
    assert [name for name in methods if parameters(getattr(mine, name)) != parameters(getattr(theirs, name))] == []


def parameters(function):
    return [(it.name, it.kind, it.default) for it in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(("name", "better"), OLDER.items())
def test_an_older_name_says_which_one_to_use(name, better):
    with pytest.warns(DeprecationWarning, match=better):
        assert getattr(ours, name).__name__ == name


def test_the_errors_are_those_of_the_official_sdk():
    for name in ("parse_error", "invalid_request", "internal_error", "auth_required", "invalid_params"):
        assert getattr(ours.RequestError, name)({"a": 1}).to_error_obj() == (
            getattr(acp.RequestError, name)({"a": 1}).to_error_obj()
        )
    for name in ("method_not_found", "resource_not_found"):
        assert (
            getattr(ours.RequestError, name)("x").to_error_obj() == getattr(acp.RequestError, name)("x").to_error_obj()
        )


def test_the_import_needs_neither_pydantic_nor_asyncio_s_subprocesses():
    code = "import sys, accord.compat.acp as acp; acp.text_block('x'); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_type_checkers_see_every_name():
    tree = ast.parse(Path(ours.__file__).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module.removeprefix("accord.compat.acp.")
        for block in blocks
        for node in block.body
        for alias in node.names
    }
    assert seen == NAMES


def test_the_stub_for_type_checkers_has_every_model_as_it_is():
    tool = Path(__file__).parents[2] / "tools" / "compat_stub.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_model_with_more_fields_is_refused_where_it_is_made():
    annotations = {"__annotations__": {"mood": str}}
    with pytest.raises(TypeError, match="Chunk adds 'mood': a model cannot get more fields; use field_meta"):
        type("Chunk", (schema.AgentMessageChunk,), annotations)
    assert type("Chunk", (schema.AgentMessageChunk,), {})(content=ours.text_block("x")).content.text == "x"
