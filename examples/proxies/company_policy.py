"""A company's rules between any editor and any agent: files and commands that are refused, secrets, an audit log.

accord conduct "python company_policy.py company_policy.toml audit.jsonl" "gemini --acp"

The rules are those of `accord.PermissionPolicy`. They hold for permission requests, and for the files and commands that
the agent wants of the editor. Secrets become `[secret]` in prompts, in files that the agent reads, in what commands
print and in what the agent tells. Each decision is a line of the audit log before it has an effect; if the log cannot
be written, nothing is allowed.

What an agent does on its own, without the editor, no proxy sees: run such an agent in a container.
"""

import getpass
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from redactor import SECRET, redacted

import accord
from accord import updates, v1, v2
from accord.session import SessionState, ToolCallState

HERE = Path(__file__).parent
POLICY = accord.PermissionPolicy.load(sys.argv[1] if len(sys.argv) > 1 else HERE / "company_policy.toml")
AUDIT = Path(sys.argv[2] if len(sys.argv) > 2 else "audit.jsonl")
REFUSED = -32011
HIDDEN = "[secret]"

proxy = accord.Proxy("company-policy", version="1.0", state=SessionState)
folders: dict[str, str] = {}
"""The folder of each session."""


# Deciding

AnyHop = accord.Hop[SessionState] | accord.sync.Hop[SessionState]
"""That of an `async def` or of a `def`."""


def decided(what: str, call: ToolCallState, hop: AnyHop) -> str:
    """The answer of the rules, after it was written to the log."""
    answer, rule = POLICY.judge(call, cwd=folders.get(hop.session_id or "", "/"))
    note(hop, what, call.title, answer, rule)
    return answer


def must_be_allowed(what: str, call: ToolCallState, hop: AnyHop) -> None:
    if decided(what, call, hop) == "reject":
        raise accord.RequestError(REFUSED, f"the company's policy does not allow this: {what} {call.title}")


def note(hop: AnyHop, what: str, subject: str, answer: str, why: str) -> None:
    line = {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "user": getpass.getuser(),
        "session": hop.session_id,
        "what": what,
        "subject": redacted(subject),
        "answer": answer,
        "why": why,
    }
    file = os.open(AUDIT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{json.dumps(line)}\n".encode())
    finally:
        os.close(file)


# Sessions and their tool calls


def keep_folder(message: Any, answer: Any) -> None:
    folders[str(getattr(answer, "session_id", None) or message.session_id)] = message.cwd


async def opened(request: Any, hop: accord.Hop[SessionState]) -> Any:
    answer = await hop.forward(request)
    keep_folder(request, answer)
    return answer


for opening in (v1.NewSessionRequest, v1.ForkSessionRequest, v2.NewSessionRequest, v2.ForkSessionRequest):
    proxy.from_client(opening)(opened)


def reopened(request: Any, _: accord.sync.Hop[SessionState]) -> Any:
    keep_folder(request, None)
    return request


for reopening in (v1.LoadSessionRequest, v1.ResumeSessionRequest, v2.ResumeSessionRequest):
    proxy.from_client(reopening)(reopened)


@proxy.updates
def hide_in_update(update: Any, hop: accord.sync.Hop[SessionState]) -> Any:
    if isinstance(update, v1.ToolCall | v1.ToolCallProgress):
        hop.state.add(update.as_update())
    elif isinstance(update, updates.ToolCallUpdate):
        hop.state.add(update)
    return redacted(update)


# What the agent asks for


@proxy.permissions
def decide(request: Any, hop: accord.sync.Hop[SessionState]) -> bool | None:
    answer = decided("permission", call_of(request, hop.state), hop)
    return {"allow": True, "reject": False}.get(answer)


def call_of(request: Any, state: SessionState) -> ToolCallState:
    """The tool call that a question is about, with all that was told of it before."""
    subject = getattr(request, "subject", None)
    if isinstance(subject, v2.CommandPermissionSubject):
        return ToolCallState(v1.ToolCallId(""), request.title, "execute", raw_input={"command": subject.command})
    said = getattr(request, "tool_call", None) or getattr(subject, "tool_call", None)
    if said is None:
        return ToolCallState(v1.ToolCallId(""), request.title)
    state.add(said)
    return state.tool_calls[said.tool_call_id]


def use_of_file(path: str, kind: v1.ToolKind) -> ToolCallState:
    return ToolCallState(v1.ToolCallId(""), path, kind, locations=[v1.ToolCallLocation(path)])


@proxy.from_agent(v1.ReadTextFileRequest)
async def read(request: v1.ReadTextFileRequest, hop: accord.Hop[SessionState]) -> v1.ReadTextFileResponse:
    must_be_allowed("read", use_of_file(request.path, "read"), hop)
    response: v1.ReadTextFileResponse = redacted(await hop.forward(request))
    return response


@proxy.from_agent(v1.WriteTextFileRequest)
def write(request: v1.WriteTextFileRequest, hop: accord.sync.Hop[SessionState]) -> v1.WriteTextFileRequest:
    must_be_allowed("write", use_of_file(request.path, "edit"), hop)
    if HIDDEN in request.content:  # the agent was shown this in the place of a secret, which a write would destroy
        note(hop, "write", request.path, "reject", "a hidden secret")
        raise accord.RequestError(
            REFUSED, f"{request.path} has a secret that you were not shown; ask the user to edit it"
        )
    return request


@proxy.from_agent(v1.CreateTerminalRequest)
def run(request: v1.CreateTerminalRequest, hop: accord.sync.Hop[SessionState]) -> v1.CreateTerminalRequest:
    raw = {"command": request.command} | ({"args": list(request.args)} if request.args else {})
    title = " ".join([request.command, *(request.args or ())])
    must_be_allowed("run", ToolCallState(v1.ToolCallId(""), title, "execute", raw_input=raw), hop)
    return request


@proxy.from_agent(v1.TerminalOutputRequest)
async def show_output(request: v1.TerminalOutputRequest, hop: accord.Hop[SessionState]) -> v1.TerminalOutputResponse:
    response: v1.TerminalOutputResponse = redacted(await hop.forward(request))
    return response


@proxy.prompts
def hide_in_prompt(prompt: list[Any], hop: accord.sync.Hop[SessionState]) -> list[Any]:
    blocks: list[Any] = redacted(prompt)
    if blocks != prompt:
        note(hop, "prompt", f"{len(SECRET.findall(str(prompt)))} secrets", "hidden", "secrets")
    return blocks


if __name__ == "__main__":
    proxy.run()
