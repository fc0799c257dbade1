"""The official Python SDK's client: takes the steps of a script one by one, and prints what the SDK gave for each.

python_client.py SCRIPT -- AGENT [ARGUMENT ...]
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from acp import Client, RequestError, spawn_agent_process
from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.schema import (
    AllowedOutcome,
    AuthenticateRequest,
    CancelNotification,
    CloseSessionRequest,
    CreateTerminalResponse,
    DeniedOutcome,
    ForkSessionRequest,
    InitializeRequest,
    ListSessionsRequest,
    LoadSessionRequest,
    NewSessionRequest,
    PromptRequest,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    ResumeSessionRequest,
    SetSessionConfigOptionBooleanRequest,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
    TerminalExitStatus,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)
from pydantic import BaseModel

PATIENCE = 30.0
INVALID_PARAMS, NOT_FOUND = -32602, -32002

METHODS: dict[str, tuple[str, type[BaseModel]]] = {
    "initialize": ("initialize", InitializeRequest),
    "authenticate": ("authenticate", AuthenticateRequest),
    "session/new": ("new_session", NewSessionRequest),
    "session/load": ("load_session", LoadSessionRequest),
    "session/list": ("list_sessions", ListSessionsRequest),
    "session/fork": ("fork_session", ForkSessionRequest),
    "session/resume": ("resume_session", ResumeSessionRequest),
    "session/close": ("close_session", CloseSessionRequest),
    "session/prompt": ("prompt", PromptRequest),
    "session/cancel": ("cancel", CancelNotification),
    "session/set_mode": ("set_session_mode", SetSessionModeRequest),
    "session/set_config_option": ("set_config_option", SetSessionConfigOptionSelectRequest),
}


class Unsupported(Exception):
    """The SDK has no way to say this."""


def plain(value: Any) -> Any:
    """What the SDK gave, as JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


class Terminal:
    def __init__(self, process: asyncio.subprocess.Process, limit: int | None) -> None:
        self.process = process
        self.limit = limit
        self.output = b""
        self.truncated = False
        self.collected = asyncio.create_task(self.collect())

    async def collect(self) -> None:
        assert self.process.stdout
        while data := await self.process.stdout.read(65536):
            self.output += data
            if self.limit is not None and len(self.output) > self.limit:
                self.truncated = True
                self.output = self.output[-self.limit :] if self.limit else b""
        await self.process.wait()

    def status(self) -> dict[str, Any]:
        code = self.process.returncode
        if code is None or not self.collected.done():
            return {}
        return {"exit_code": code} if code >= 0 else {"signal": f"SIG{-code}"}

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()


class ScriptedClient(Client):
    """Lends a folder's files and real terminals, answers questions as the script says, and notes everything."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder).resolve()
        self.answers: dict[str, Any] = {}
        self.terminals: dict[str, Terminal] = {}
        self.ever_seen: set[str] = set()
        self.changed = asyncio.Condition()
        self.clear()

    def clear(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.told: list[Any] = []

    async def noted(self, method: str, params: dict[str, Any], answer: Awaitable[Any]) -> Any:
        note: dict[str, Any] = {"method": method, "params": {key: plain(value) for key, value in params.items()}}
        self.asked.append(note)
        try:
            result = await answer
        except RequestError as error:
            note["error"] = {"code": error.code, "message": str(error)}
            raise
        note["result"] = plain(result)
        return result

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(plain(update))
        self.ever_seen.add(update.session_update)
        async with self.changed:
            self.changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(condition)

    # Files

    def within(self, path: str) -> Path:
        resolved = Path(path).resolve()
        if not resolved.is_relative_to(self.folder):
            raise RequestError(INVALID_PARAMS, f"outside of the folder: {path}")
        return resolved

    async def read_text_file(self, session_id: str, path: str, line: Any = None, limit: Any = None, **_: Any) -> Any:
        params = {"sessionId": session_id, "path": path, "line": line, "limit": limit}
        return await self.noted("fs/read_text_file", params, self.read(path, line, limit))

    async def read(self, path: str, line: int | None, limit: int | None) -> ReadTextFileResponse:
        try:
            lines = self.within(path).read_text().splitlines(keepends=True)
        except OSError as error:
            raise RequestError(NOT_FOUND, f"no such file: {path}") from error
        first = (line or 1) - 1
        return ReadTextFileResponse(content="".join(lines[first : None if limit is None else first + limit]))

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> Any:
        params = {"sessionId": session_id, "path": path, "content": content}
        return await self.noted("fs/write_text_file", params, self.write(path, content))

    async def write(self, path: str, content: str) -> WriteTextFileResponse:
        target = self.within(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        return WriteTextFileResponse()

    # Terminals

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: Any = None,
        env: Any = None,
        cwd: Any = None,
        output_byte_limit: Any = None,
        **_: Any,
    ) -> Any:
        params = {"sessionId": session_id, "command": command, "args": args, "cwd": cwd}
        return await self.noted("terminal/create", params, self.start(command, args, env, cwd, output_byte_limit))

    async def start(self, command: str, args: Any, env: Any, cwd: Any, limit: int | None) -> CreateTerminalResponse:
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            cwd=cwd or self.folder,
            env={**os.environ, **{variable.name: variable.value for variable in env or []}},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        terminal_id = f"terminal_{len(self.terminals)}"
        self.terminals[terminal_id] = Terminal(process, limit)
        return CreateTerminalResponse(terminal_id=terminal_id)

    def terminal(self, terminal_id: str) -> Terminal:
        try:
            return self.terminals[terminal_id]
        except KeyError:
            raise RequestError(NOT_FOUND, f"no such terminal: {terminal_id}") from None

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        async def output() -> TerminalOutputResponse:
            terminal = self.terminal(terminal_id)
            status = terminal.status()
            return TerminalOutputResponse(
                output=terminal.output.decode(errors="replace"),
                truncated=terminal.truncated,
                exit_status=TerminalExitStatus(**status) if status else None,
            )

        return await self.noted("terminal/output", {"terminalId": terminal_id}, output())

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        async def wait() -> WaitForTerminalExitResponse:
            terminal = self.terminal(terminal_id)
            await terminal.collected
            return WaitForTerminalExitResponse(**terminal.status())

        return await self.noted("terminal/wait_for_exit", {"terminalId": terminal_id}, wait())

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        async def kill() -> None:
            self.terminal(terminal_id).kill()

        return await self.noted("terminal/kill", {"terminalId": terminal_id}, kill())

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        async def release() -> ReleaseTerminalResponse:
            terminal = self.terminal(terminal_id)
            terminal.kill()
            await terminal.collected
            del self.terminals[terminal_id]
            return ReleaseTerminalResponse()

        return await self.noted("terminal/release", {"terminalId": terminal_id}, release())

    # Questions

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        async def choose() -> RequestPermissionResponse:
            wanted = self.answers.get("permission", "allow_once")
            chosen = next((option for option in options if option.kind == wanted), None)
            if chosen is None:
                return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
            return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

        params = {"sessionId": session_id, "toolCall": tool_call, "options": options}
        return await self.noted("session/request_permission", params, choose())

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        async def answer() -> Any:
            return self.answers.get("elicitation", {"action": "decline"})

        return await self.noted("elicitation/create", {"message": message, **plain(mode)}, answer())

    async def complete_elicitation(self, elicitation_id: str, **_: Any) -> None:
        self.told.append({"method": "elicitation/complete", "params": {"elicitationId": elicitation_id}})

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        async def echo() -> dict[str, Any]:
            if method != "interop.example/echo":
                raise RequestError.method_not_found(f"_{method}")
            return {"echo": params}

        return await self.noted(f"_{method}", params, echo())

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.told.append({"method": f"_{method}", "params": params})


class Run:
    """The steps of one script, taken one by one."""

    def __init__(self, client: ScriptedClient, agent: Any, script: dict[str, Any]) -> None:
        self.client = client
        self.agent = agent
        self.known: dict[str, Any] = {"folder": script["folder"], **script.get("known", {})}
        self.aside: dict[str, asyncio.Task[Any]] = {}

    def filled(self, value: Any) -> Any:
        """What a script says with `<name>` stands for what was kept under that name."""
        if isinstance(value, str):
            return re.sub(r"<(\w+)>", lambda found: str(self.known.get(found[1], found[0])), value)
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in value.items()}
        return value

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        if method.startswith("_"):
            return await self.agent.ext_method(method[1:], params)
        if method not in METHODS:
            raise Unsupported(f"the SDK's client has no {method}")
        name, model = METHODS[method]
        if method == "session/set_config_option" and params.get("type") == "boolean":
            model = SetSessionConfigOptionBooleanRequest
        typed = model.model_validate(params)
        arguments = {key: getattr(typed, key) for key in typed.model_fields_set - {"field_meta", "type"}}
        return plain(await getattr(self.agent, name)(**arguments, **(params.get("_meta") or {})))

    async def take(self, step: dict[str, Any]) -> dict[str, Any]:
        params = self.filled(step.get("params", {}))
        if "tell" in step:
            if step["tell"].startswith("_"):
                await self.agent.ext_notification(step["tell"][1:], params)
            else:
                await self.ask(step["tell"], params)
        elif "await" in step:
            await self.client.until(lambda: step["await"] in self.client.ever_seen)
        elif "await_updates" in step:
            await self.client.until(lambda: len(self.client.updates) >= step["await_updates"])
        elif "finish" in step:
            return {"result": await self.aside[step["finish"]]}
        else:
            return await self.call(step, params)
        return {}

    async def call(self, step: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        asking = asyncio.create_task(self.ask(step["call"], params))
        if "cancel_after" in step:
            await self.client.until(lambda: len(self.client.updates) >= step["cancel_after"])
            await self.agent.cancel(session_id=params["sessionId"])
        if "aside" in step:
            self.aside[step["aside"]] = asking
            return {}
        return {"result": await asking}

    async def step(self, step: dict[str, Any]) -> dict[str, Any]:
        self.client.answers |= step.get("answers", {})
        try:
            outcome = await self.take(step)
        except Unsupported as reason:
            outcome = {"unsupported": str(reason)}
        except RequestError as error:
            outcome = {"error": {"code": error.code, "message": str(error), "data": error.data}}
        except Exception as error:
            outcome = {"error": {"local": f"{type(error).__name__}: {error}"}}
        for name, field in step.get("keep", {}).items():
            self.known[name] = (outcome.get("result") or {}).get(field)
        return outcome


async def main(script: dict[str, Any]) -> None:
    client = ScriptedClient(script["folder"])
    # A spawned agent's reader stops at 64 KiB unless told otherwise, and its stderr goes where nobody reads it.
    streams = {"limit": DEFAULT_STDIO_BUFFER_LIMIT_BYTES, "stderr": None}
    async with spawn_agent_process(client, *sys.argv[3:], transport_kwargs=streams, use_unstable_protocol=True) as (
        agent,
        _,
    ):
        run = Run(client, agent, script)
        for index, step in enumerate(script["steps"]):
            outcome = await run.step(step)
            noted = {"updates": client.updates, "asked": client.asked, "told": client.told}
            print(json.dumps({"step": index, **outcome, **noted, "known": run.known}), flush=True)
            client.clear()


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
