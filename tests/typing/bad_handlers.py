"""Handlers that strict type checkers refuse, at each line that is marked with `error`."""

from __future__ import annotations

import accord
from accord import v1


class Notes:
    def __init__(self) -> None:
        self.lines: list[str] = []


agent = accord.Agent("bad")
notebook = accord.Agent("notebook", state=Notes)
handlers = accord.Handlers()


@agent.on_prompt  # error
def takes_too_much(x: int, y: str) -> bytes:
    return b""


@agent.on_prompt  # error
async def gives_bytes(turn: accord.Turn) -> bytes:
    return turn.text.encode()


@agent.on_prompt  # error
def takes_the_turn_of_async_functions(turn: accord.Turn) -> None: ...


@agent.on_prompt  # error
async def takes_the_turn_of_plain_functions(turn: accord.sync.Turn) -> None:
    turn.say("hello")


@agent.on_session  # error
def takes_a_turn(turn: accord.Turn) -> None: ...


@agent.on_config  # error
def takes_too_little(session: accord.Session) -> None: ...


@agent.on_config  # error
def takes_numbers(session: accord.Session, option_id: str, value: int) -> None: ...


@agent.command("count", "Takes a number")  # error
async def takes_a_number(turn: accord.Turn, number: int) -> None: ...


@agent.login("account", "Account")  # error
async def takes_a_name(name: str) -> None: ...


@agent.on_login_check  # error
def takes_a_login(login: accord.Login) -> bool:
    return True


@agent.on_logout  # error
def takes_a_session(session: accord.Session) -> None: ...


@agent.on(v1.PromptRequest)  # error
async def takes_another_request(request: v1.NewSessionRequest, context: accord.Context) -> v1.PromptResponse:
    return v1.PromptResponse("end_turn")


@agent.on(v1.PromptRequest)  # error
async def gives_another_response(request: v1.PromptRequest, context: accord.Context) -> v1.NewSessionResponse:
    return v1.NewSessionResponse(request.session_id)


@handlers.on(v1.InitializeRequest)  # error
def gives_text(request: v1.InitializeRequest) -> str:
    return ""


@handlers.on(v1.InitializeRequest)  # error
def takes_three(request: v1.InitializeRequest, context: accord.Context, more: int) -> v1.InitializeResponse:
    return v1.InitializeResponse(more)


@handlers.on(v1.CancelNotification)  # error
def takes_a_request(notification: v1.PromptRequest) -> None: ...


@handlers.on(v1.CancelNotification)  # error
async def takes_a_number_for_a_context(notification: v1.CancelNotification, context: int) -> None: ...


@handlers.on_request("_example.com/raw")  # error
def takes_four(a: int, b: int, c: int, d: int) -> None: ...


@handlers.on_other  # error
def takes_one(method: str) -> None: ...


@notebook.on_prompt  # error
async def takes_another_state(turn: accord.Turn[int]) -> None: ...


@notebook.on_session  # error
def takes_a_session_with_another_state(session: accord.Session[str]) -> None: ...


@notebook.on_prompt
async def misspells_its_state(turn: accord.Turn[Notes]) -> None:
    turn.session.state.pages.append(turn.text)  # error


def allow(question: accord.FormQuestion) -> bool:
    return bool(question)


def fill(question: accord.PermissionQuestion) -> None: ...


accord.Client(permissions=allow)  # error
accord.Client(elicitation=fill)  # error
accord.Client(permissions="all")  # error
accord.Agent("misspelled", remember="sesion")  # error


async def connects() -> None:
    with accord.connect(agent):  # error
        pass


async def waits() -> None:
    await accord.connect(agent)  # error


async def asks(turn: accord.Turn) -> None:
    await turn.say(5)  # error
    await turn.plan(["a"])  # error
    await turn.ask("Push", "sure?")  # error
