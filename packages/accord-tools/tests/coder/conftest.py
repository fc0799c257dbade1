"""A coding agent in this process, with a model that says what a test tells it to say, over each of the three APIs."""

import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from interop.model.replies import Asked, ToolCall, Words
from interop.model.server import ModelServer

import accord
from accord_tools.coder.coding_agent import coding_agent
from accord_tools.coder.open_model import ModelSettings
from tests.forked_programs import forked_programs, fresh_programs  # noqa: F401

APIS = ["anthropic", "openai", "responses"]


class Script:
    """Says what is next in a list, one entry for each request; a function is called with what was asked."""

    def __init__(self):
        self.entries = []

    def say(self, *entries):
        self.entries += entries

    def __call__(self, asked: Asked):
        entry = self.entries.pop(0) if self.entries else "I have nothing more to say."
        if callable(entry):
            entry = entry(asked)
        for piece in entry if isinstance(entry, list) else [entry]:
            yield Words(piece) if isinstance(piece, str) else piece


def call(name, **arguments):
    """The model calls a tool."""
    return ToolCall(name, arguments)


@pytest.fixture
def script():
    return Script()


@pytest.fixture(params=APIS)
def api(request):
    return request.param


@pytest.fixture
def model(script):
    with ModelServer(reply=script) as server:
        yield server


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "hello.txt").write_text("hello\nworld\n")
    return folder


@pytest.fixture
def settings(api, model):
    return ModelSettings(
        api=api, model="fake", base_url=model.url + ("" if api == "anthropic" else "/v1"), price=(3.0, 15.0)
    )


class Questions:
    """Answers every question, and remembers them."""

    def __init__(self):
        self.allow = True
        self.titles = []

    async def __call__(self, question: accord.PermissionQuestion):
        self.titles.append(question.tool_call.title)
        return self.allow


@pytest.fixture
def questions():
    return Questions()


@pytest.fixture
def opened(settings, questions, project, tmp_path):
    """Opens a session: `async with opened() as session`."""

    @asynccontextmanager
    async def open_session(
        *, client=None, load=None, changed=settings, mode="ask", providers=None, mcp_servers=(), suggests=False
    ):
        agent = coding_agent(changed, version="0", store=tmp_path / "sessions.sqlite3", mode=mode, unstable=True)
        client = client or accord.Client(files=True, terminals=True, permissions=questions, prompt_suggestions=suggests)
        async with accord.connect(agent, client, unstable=True, providers=providers) as remote:
            if load is None:
                session = await remote.new_session(project, mcp_servers=list(mcp_servers))
            else:
                session = await remote.load(load, project)
            yield session

    return open_session


def text_of(body):
    """All that a request to a model says, for tests that look for words."""
    return json.dumps(body)


def read(path: Path) -> str:
    return path.read_text()
