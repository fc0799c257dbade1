"""The classes of `accord.sync` are those with `async`: their members, parameters and docstrings do not drift apart."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import accord
from accord.session import SessionState

ROOT = Path(__file__).parents[4]
specification = importlib.util.spec_from_file_location("sync_faces", ROOT / "tools" / "sync_faces.py")
faces = importlib.util.module_from_spec(specification)
specification.loader.exec_module(faces)

PAIRS = {
    "OpenDocument": (accord.OpenDocument, accord.sync.OpenDocument),
    "Suggestion": (accord.Suggestion, accord.sync.Suggestion),
    "Suggestions": (accord.Suggestions, accord.sync.Suggestions),
    "RemoteAgent": (accord.RemoteAgent, accord.sync.RemoteAgent),
    "RemoteSession": (accord.RemoteSession, accord.sync.RemoteSession),
    "RemoteSubagent": (accord.RemoteSubagent, accord.sync.RemoteSubagent),
    "Reply": (accord.Reply, accord.sync.Reply),
    "SessionState": (SessionState, accord.sync.SessionState),
}
FACES = {it.node.name: it for path in faces.MODULES for it in faces.faces_of(path)}
ONLY_IN_SYNC = {"Reply": {"outcome"}}


def members(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


@pytest.mark.parametrize("path", faces.generated(), ids=lambda path: path.name)
def test_a_stub_is_up_to_date(path):
    assert faces.outdated({path: faces.generated()[path]}) == [], "run: python tools/sync_faces.py"


@pytest.mark.parametrize("path", faces.MODULES)
def test_a_class_has_the_members_parameters_and_docstrings_of_its_stub(path):
    module = importlib.import_module("accord." + path.removesuffix(".py").replace("/", "."))
    stub = ast.parse((faces.SOURCE / path).with_suffix(".pyi").read_text())
    for cls in (it for it in stub.body if isinstance(it, ast.ClassDef) and not it.name.startswith("_")):
        made = vars(getattr(module, cls.name))
        declared = {}
        for it in faces.functions_of(cls):
            declared.setdefault(it.name, it)
        assert {it for it in made if not it.startswith("_") or it in faces.SPECIAL.values()} == set(declared), cls.name
        for name, node in declared.items():
            where = f"{cls.name}.{name}"
            text = re.sub(r"\s+", " ", ast.get_docstring(node) or "")
            assert re.sub(r"\s+", " ", inspect.getdoc(made[name]) or "").strip() == text or name.startswith("__"), where
            if inspect.isfunction(made[name]) and not node.decorator_list:
                shown = inspect.signature(made[name])
                assert list(shown.parameters) == [
                    it.arg for it in ast.walk(node.args) if isinstance(it, ast.arg)
                ] or name.startswith("__"), where
                result = ast.unparse(node.returns).replace("Turn[StateT]", "Turn")
                assert str(shown.return_annotation).replace("Turn[StateT]", "Turn") == result, where


def test_a_changed_signature_or_docstring_makes_a_stub_outdated(tmp_path):
    path = tmp_path / "faces.pyi"
    text = faces.stub_class(FACES["Reply"])
    for change in ("within: float", "within: int"), ("Ask the agent to stop", "Ask the agent to go on"):
        assert change[0] in text
        path.write_text(faces.NOTICE + text.replace(*change))
        assert faces.outdated({path: text}) == [path]


def test_the_names_of_accord_sync_are_these():
    of_clients = "ConnectionBlock OpenDocument RemoteAgent RemoteSession RemoteSubagent Reply SessionState Suggestion"
    of_agents = "ElicitedUrl Login PlanDocument RemoteClient RemoteTerminal RunningCompaction SentMessage Session"
    others = "Hop Neighbour Subagent Suggestions Task Tool Turn TurnPlan"
    names = [*of_clients.split(), *of_agents.split(), *others.split()]
    names = [*sorted(names), "connect", "open"]
    assert dir(accord.sync) == names
    assert all(getattr(accord.sync, name) for name in names)


@pytest.mark.parametrize("name", PAIRS)
def test_a_class_has_the_members_of_the_class_with_async(name):
    with_async, sync = PAIRS[name]
    face = FACES[name]
    added = {it.name for it in face.attributes()} | ONLY_IN_SYNC.get(name, set())
    assert members(sync) == (members(with_async) | added) - set(face.words("without"))


@pytest.mark.parametrize("name", PAIRS)
def test_methods_have_the_same_parameters(name):
    with_async, sync = PAIRS[name]
    methods = [it for it in members(with_async) & members(sync) if inspect.isfunction(vars(with_async).get(it))]
    assert methods
    for method in set(methods) - {"text"}:
        theirs, ours = inspect.signature(getattr(with_async, method)), inspect.signature(getattr(sync, method))
        assert list(theirs.parameters.values()) == list(ours.parameters.values()), method


@pytest.mark.parametrize("function", ["connect", "open"])
def test_connecting_takes_the_same_parameters_everywhere(function):
    expected = inspect.signature(accord.connect).parameters
    assert inspect.signature(getattr(accord.sync, function)).parameters == expected
    assert inspect.signature(accord.open).parameters == expected


@pytest.mark.parametrize("name", [*PAIRS, "connect", "open"])
def test_every_member_has_a_docstring_that_fits_plain_functions(name):
    value = getattr(accord.sync, name)
    docstrings = [inspect.getdoc(value)]
    if inspect.isclass(value):
        docstrings += [inspect.getdoc(vars(value)[it]) for it in vars(value) if not it.startswith("_")]
    assert all(docstrings)
    assert not [it for it in docstrings if re.search(r"\b(a?wait reply|await\w*|async|tasks?|coroutine)\b", it)]


def test_accord_alone_does_not_load_what_is_only_for_threads():
    script = "import sys, accord; accord.connect; print([it for it in sys.modules if it.startswith('accord.sync')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_objects_show_no_inner_member():
    agent = accord.Agent("quiet")
    agent.on_prompt(lambda _: None)
    with accord.sync.connect(agent) as remote:
        session = remote.new_session("/")
        shown = {it for it in dir(session) if not it.startswith("_")}
        assert shown == (members(accord.RemoteSession) | {"id", "cwd", "roots", "state"}) - {"fold"}
        assert {it for it in dir(remote) if not it.startswith("_")} == members(accord.RemoteAgent) | {"version"}
