"""A page for each error code of the protocol: what it means, how it is raised, and what the other side sees.

Each page has a program that raises the error in an agent and catches it in a client. The build runs it and shows what
it prints.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tools.website.page import Page

from accord import RequestError, errors
from accord_check.requirements import ALL


class Code(NamedTuple):
    """An error code, and what is known about it beside its number."""

    number: int
    title: str
    made_by: Callable[..., RequestError] | None
    call: str
    """The expression that a handler raises."""
    cause: str
    remedy: str


CODES: tuple[Code, ...] = (
    Code(
        errors.PARSE_ERROR,
        "Parse error",
        RequestError.parse_error,
        'accord.RequestError.parse_error("the settings are not JSON")',
        "The text is not JSON. Accord answers a frame that it cannot read with this code; the id of that answer is "
        "null, because the id could not be read either.",
        "Send one JSON text for each line, in UTF-8, without line breaks inside. `accord trace` shows what was sent.",
    ),
    Code(
        errors.INVALID_REQUEST,
        "Invalid request",
        RequestError.invalid_request,
        'accord.RequestError.invalid_request("the session is closing")',
        "The message is JSON, but not a request of JSON-RPC 2.0, or it is not allowed now: a message before "
        "`initialize`, a second `initialize`, or an id that is already in use.",
        "Read `message`: it says what was wrong. Libraries send correct messages; a hand-written peer should be "
        "checked with `accord check`.",
    ),
    Code(
        errors.METHOD_NOT_FOUND,
        "Method not found",
        RequestError.method_not_found,
        'accord.RequestError.method_not_found("_example.com/undo")',
        "The other side has no handler for the method. `data.method` names it.",
        "Look at the capabilities that the other side declared before you call an optional method. Accord does: it "
        "raises `accord.CapabilityMissing` without sending anything.",
    ),
    Code(
        errors.INVALID_PARAMS,
        "Invalid params",
        RequestError.invalid_params,
        'accord.RequestError.invalid_params("no such mode", path="modeId")',
        "The params have the wrong type, lack a field, or name something that is not offered. `data.path` names the "
        "field where it is known.",
        "Correct the field. A relative path where the protocol wants an absolute one is the usual case.",
    ),
    Code(
        errors.INTERNAL_ERROR,
        "Internal error",
        RequestError.internal,
        'accord.RequestError.internal("the model did not answer")',
        "The handler failed. Accord sends it without the text of the exception, which may hold secrets.",
        "Read the other side's standard error: the traceback is there. While you develop, write "
        "`accord.Agent(..., debug=True)`: then the client is told what was raised.",
    ),
    Code(
        errors.REQUEST_CANCELLED,
        "Request cancelled",
        RequestError.cancelled,
        "accord.RequestError.cancelled()",
        "The request was cancelled before it had a result. A cancelled *prompt* is answered with the stop reason "
        "`cancelled` and not with this error.",
        "Nothing is wrong: somebody who asked for it does not wait for it any longer.",
    ),
    Code(
        errors.AUTH_REQUIRED,
        "Authentication required",
        RequestError.auth_required,
        "accord.RequestError.auth_required()",
        "The agent needs a login before it can do this.",
        "Log in with one of the methods that the agent offers: `accord login AGENT`, or `remote.login(...)`.",
    ),
    Code(
        errors.NOT_FOUND,
        "Resource not found",
        RequestError.not_found,
        'accord.RequestError.not_found("no such file", uri="file:///notes.txt")',
        "A session, a file or something else does not exist.",
        "List what exists: `remote.list_sessions()`, or `accord sessions`. A file: check the path, which is absolute "
        "and is resolved by the client.",
    ),
    Code(
        errors.UNSUPPORTED_VERSION,
        "Unsupported protocol version",
        None,
        'accord.RequestError(-32022, "Unsupported protocol version")',
        "In the draft of version 2: the agent does not speak the version that the client asked for.",
        "Offer version 1 as well. Accord does, unless `versions=` says otherwise.",
    ),
)

PROGRAM = """\
import accord

agent = accord.Agent("example")


@agent.on_prompt
async def reply(turn: accord.Turn) -> None:
    raise {call}


async def main() -> None:
    async with accord.connect(agent) as remote:
        session = await remote.new_session("/")
        try:
            await session.prompt("Go on")
        except accord.PeerError as error:
            print(error.code, error.message, error.data)


accord.run(main())
"""


def error_pages() -> Iterator[Page]:
    lines = [
        "# Error codes",
        "",
        "An error answers one request. It has a code, a message for people, and sometimes data for programs.",
        "A side that answers with an error raises [`accord.RequestError`](../reference/accord.RequestError.md);",
        "the side that asked gets [`accord.PeerError`](../reference/accord.PeerError.md).",
        "",
        "| code | name | when |",
        "|---|---|---|",
    ]
    for it in CODES:
        lines.append(f"| [{it.number}]({file_of(it)}) | {it.title} | {it.cause.partition('. ')[0].rstrip('.')} |")
        yield Page(f"errors/{file_of(it)}", page_of(it, output(program(it))))
    yield Page("errors/index.md", "\n".join([*lines, "", *OTHER_ERRORS]))


OTHER_ERRORS = (
    "Errors that are not answers, such as a closed connection or a passed deadline, are exceptions of their own: see",
    "[Errors](../reference/errors.md).",
    "",
)


def file_of(code: Code) -> str:
    return f"{-code.number}.md"


def program(code: Code) -> str:
    return PROGRAM.format(call=code.call)


def output(source: str) -> str:
    """What a program prints."""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise SystemExit(f"an example of an error code failed:\n{source}\n{done.stderr}")
    return done.stdout


def page_of(code: Code, printed: str) -> str:
    lines = [f"# {code.number}: {code.title}", "", code.cause, "", "## What to do", "", code.remedy, ""]
    if code.made_by is not None:
        made = f"`accord.RequestError.{code.made_by.__name__}`"
        lines += ["## Raise it", "", f"{made}: {inspect.getdoc(code.made_by)}", ""]
    lines += ["## Example", "", f"```py\n{program(code)}```", "", "It prints:", "", f"```text\n{printed}```", ""]
    demands = [it for it in ALL if str(code.number) in it.clause]
    if demands:
        lines += ["## Requirements", "", *(f"- [{it.id}](../requirements/{it.id}.md)" for it in demands), ""]
    return "\n".join(lines)
