"""Handlers that strict type checkers accept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import assert_type

import accord
from accord import v1


class Greet(accord.Request[str], method="_example.com/greet"):
    name: str


class Wave(accord.Notification, method="_example.com/wave"):
    hands: int


class Notes:
    def __init__(self) -> None:
        self.lines: list[str] = []


agent = accord.Agent("good")
notebook = accord.Agent("notebook", state=Notes)
handlers = accord.Handlers()


@agent.on_prompt
async def answer(turn: accord.Turn) -> None:
    await turn.say(turn.text)


@agent.on_prompt
async def refuse(turn: accord.Turn) -> str | None:
    return "refusal" if turn.text else None


@agent.on_prompt
async def stream(turn: accord.Turn) -> AsyncIterator[str]:
    yield turn.text


@agent.on_prompt
def say_words(turn: accord.sync.Turn) -> Iterator[str]:
    yield from turn.text.split()


@agent.on_prompt
def say_all(turn: accord.sync.Turn) -> None:
    with turn.tool("Look") as tool:
        assert_type(tool, accord.sync.Tool)
        if tool.ask():
            turn.say(turn.files.read("a.txt"))
    assert_type(turn.start(len, "four").result(), int)


@notebook.on_prompt
def note_plainly(turn: accord.sync.Turn[Notes]) -> str:
    turn.session.state.lines.append(turn.text)
    return "end_turn"


@notebook.on_session
def open_notebook(session: accord.sync.Session[Notes]) -> None:
    session.modes.offer(["read", "write"])


@agent.command("plain", "A plain function")
def plain(turn: accord.sync.Turn, text: str) -> None:
    turn.say(text)


@agent.login("token", "Token")
def log_in_plainly(login: accord.sync.Login) -> bool:
    return bool(login.elicit_url("Sign in", "https://example.com"))


@agent.on_session
async def prepare(session: accord.Session) -> None:
    await session.set_title("A title")


@agent.on_config
async def configure(session: accord.Session, option_id: str, value: str | bool) -> None:
    await session.set_title(f"{option_id}={value}")


@agent.command("short", "Takes the turn alone")
async def short(turn: accord.Turn) -> None:
    await turn.say("short")


@agent.command("long", "Takes the text as well")
async def long(turn: accord.Turn, text: str) -> None:
    await turn.say(text)


@agent.login("account", "Account")
async def log_in(login: accord.Login) -> None:
    await login.elicit_url("Sign in", "https://example.com")


@agent.terminal_login("terminal", "At a terminal")
def has_logged_in() -> bool:
    return True


@agent.on_login_check
async def is_logged_in() -> bool:
    return True


@agent.on_logout
def log_out() -> None: ...


@agent.on(Greet)
def greet(request: Greet) -> str:
    return request.name


@agent.on(Wave)
async def wave(notification: Wave, context: accord.Context) -> None:
    assert context.request_id is None, notification.hands


@handlers.on(v1.ReadTextFileRequest)
async def read(request: v1.ReadTextFileRequest, context: accord.Context) -> v1.ReadTextFileResponse:
    return v1.ReadTextFileResponse(f"{request.path} {context.request_id}")


@handlers.on(v1.InitializeRequest)
def initialize(request: v1.InitializeRequest, context: accord.Context) -> v1.InitializeResponse:
    assert not context.cancelled
    return v1.InitializeResponse(request.protocol_version)


@handlers.on(v1.WriteTextFileRequest)
async def write(request: v1.WriteTextFileRequest) -> None:
    """None stands for an answer without fields."""


@handlers.on(v1.CancelNotification)
def cancel(notification: v1.CancelNotification) -> None: ...


@handlers.on_request("_example.com/raw")
async def raw(params: dict[str, int]) -> int:
    return params["number"]


@handlers.on_other
def other(method: str, params: object, context: accord.Context) -> None: ...


@notebook.on_prompt
async def note(turn: accord.Turn[Notes]) -> None:
    turn.session.state.lines.append(turn.text)


@notebook.on_session
def begin(session: accord.sync.Session[Notes]) -> None:
    session.state.lines.append("The beginning")


@notebook.on_config
def change(session: accord.sync.Session, option_id: str, value: str | bool) -> None:
    """Without a type argument, `state` is of any type."""
    session.state.lines.append(f"{option_id}={value}")


async def look(context: accord.Context) -> None:
    assert_type(notebook.session(context, "an id").state, Notes)


async def allow(question: accord.PermissionQuestion) -> bool:
    return question.tool_call.kind == "read"


def fill(question: accord.FormQuestion) -> None: ...


client = accord.Client(files=True, permissions=allow, elicitation=fill)


async def prompts(session: accord.RemoteSession) -> None:
    assert_type(await session.prompt("Hi").text, str)
    assert_type((await session.prompt(["Look at", Path("notes.md")], v1.TextContent("now"))).text, str)
    async for text in session.prompt("Hi").iter_text():
        assert_type(text, str)


async def connects() -> None:
    async with accord.connect(agent, client) as remote:
        assert_type(remote, accord.RemoteAgent)


async def pushes(turn: accord.Turn) -> None:
    if await turn.ask("Push", "allow_once", "reject_once"):
        await turn.say("Pushed.")
