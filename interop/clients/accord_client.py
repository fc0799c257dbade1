"""Our own client: takes the steps of a script one by one, and prints what came of each.

accord_client.py SCRIPT -- AGENT [ARGUMENT ...]
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from accord import CapabilityMissing, Handlers, Peer, PeerError, ProcessTransport, RequestError, run, v1
from accord.schema.base import Notification, Request
from accord.schema.codec import decode, encode
from accord.schema.methods import methods

PATIENCE = 30.0
NOT_FOUND, INVALID_PARAMS = -32002, -32602


def plain(value: Any) -> Any:
    """A value of the protocol as JSON."""
    return json.loads(encode(value))


class Terminal:
    """A running command and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process, limit: int | None) -> None:
        self.process = process
        self.limit = limit
        self.output = b""
        self.truncated = False
        self.finished = asyncio.create_task(self.finish())

    async def finish(self) -> None:
        assert self.process.stdout
        while data := await self.process.stdout.read(65536):
            self.output += data
            if self.limit is not None and len(self.output) > self.limit:
                self.truncated = True
                self.output = self.output[len(self.output) - self.limit :]
        await self.process.wait()

    def status(self) -> v1.TerminalExitStatus | None:
        code = self.process.returncode
        if code is None or not self.finished.done():
            return None
        return v1.TerminalExitStatus(exit_code=code) if code >= 0 else v1.TerminalExitStatus(signal=f"SIG{-code}")

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()


class Lender:
    """Lends a folder's files and real terminals, answers questions as the script says, and notes everything."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder).resolve()
        self.answers: dict[str, Any] = {}
        self.terminals: dict[str, Terminal] = {}
        self.ever_seen: set[str] = set()
        self.changed = asyncio.Condition()
        self.notes: dict[str, list[Any]] = {"updates": [], "asked": [], "told": []}

    def handlers(self) -> Handlers:
        handlers = Handlers()
        handlers.on(v1.SessionNotification)(self.update)
        handlers.on(v1.CompleteElicitationNotification)(self.completed)
        lent: dict[type[Request[Any]], Callable[[Any], Any]] = {
            v1.ReadTextFileRequest: self.read,
            v1.WriteTextFileRequest: self.write,
            v1.CreateTerminalRequest: self.start,
            v1.TerminalOutputRequest: self.output,
            v1.WaitForTerminalExitRequest: self.wait,
            v1.KillTerminalRequest: self.kill,
            v1.ReleaseTerminalRequest: self.release,
            v1.RequestPermissionRequest: self.choose,
            v1.CreateElicitationRequest: self.fill_in,
        }
        for message, answer in lent.items():
            handlers.on(message)(self.noted(answer))
        handlers.on_request("_interop.example/echo")(self.echo)
        handlers.on_notification("_interop.example/told")(self.told)
        return handlers

    async def update(self, notification: v1.SessionNotification) -> None:
        update = plain(notification.update)
        self.notes["updates"].append(update)
        self.ever_seen.add(update["sessionUpdate"])
        async with self.changed:
            self.changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(condition)

    def noted(self, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def answered(request: Any) -> Any:
            note: dict[str, Any] = {"method": request.__method__, "params": plain(request)}
            self.notes["asked"].append(note)
            try:
                result = await answer(request)
            except RequestError as error:
                note["error"] = {"code": error.code, "message": error.message}
                raise
            note["result"] = {} if result is None else plain(result)
            return result

        return answered

    def echo(self, params: Any) -> Any:
        self.notes["asked"].append({"method": "_interop.example/echo", "params": params})
        return {"echo": params}

    def told(self, params: Any) -> None:
        self.notes["told"].append({"method": "_interop.example/told", "params": params})

    def completed(self, notification: v1.CompleteElicitationNotification) -> None:
        self.notes["told"].append({"method": "elicitation/complete", "params": plain(notification)})

    def within(self, path: str) -> Path:
        resolved = Path(path).resolve()
        if not resolved.is_relative_to(self.folder):
            raise RequestError(INVALID_PARAMS, f"outside of the folder: {path}")
        return resolved

    async def read(self, request: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
        try:
            lines = self.within(request.path).read_text().splitlines(keepends=True)
        except OSError as error:
            raise RequestError(NOT_FOUND, f"no such file: {request.path}") from error
        first = (request.line or 1) - 1
        last = None if request.limit is None else first + request.limit
        return v1.ReadTextFileResponse("".join(lines[first:last]))

    async def write(self, request: v1.WriteTextFileRequest) -> None:
        self.within(request.path).write_text(request.content)

    async def start(self, request: v1.CreateTerminalRequest) -> v1.CreateTerminalResponse:
        process = await asyncio.create_subprocess_exec(
            request.command,
            *request.args,
            cwd=request.cwd or self.folder,
            env={**os.environ, **{variable.name: variable.value for variable in request.env}},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        terminal_id = v1.TerminalId(f"terminal_{len(self.terminals)}")
        self.terminals[terminal_id] = Terminal(process, request.output_byte_limit)
        return v1.CreateTerminalResponse(terminal_id)

    def terminal(self, request: Any) -> Terminal:
        try:
            return self.terminals[request.terminal_id]
        except KeyError:
            raise RequestError(NOT_FOUND, f"no such terminal: {request.terminal_id}") from None

    async def output(self, request: v1.TerminalOutputRequest) -> v1.TerminalOutputResponse:
        it = self.terminal(request)
        return v1.TerminalOutputResponse(it.output.decode(errors="replace"), it.truncated, it.status())

    async def wait(self, request: v1.WaitForTerminalExitRequest) -> v1.WaitForTerminalExitResponse:
        terminal = self.terminal(request)
        await terminal.finished
        status = terminal.status() or v1.TerminalExitStatus()
        return v1.WaitForTerminalExitResponse(status.exit_code, status.signal)

    async def kill(self, request: v1.KillTerminalRequest) -> None:
        self.terminal(request).kill()

    async def release(self, request: v1.ReleaseTerminalRequest) -> None:
        terminal = self.terminal(request)
        terminal.kill()
        await terminal.finished
        del self.terminals[request.terminal_id]

    async def choose(self, request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        wanted = self.answers.get("permission", "allow_once")
        chosen = next((option for option in request.options if option.kind == wanted), None)
        if chosen is None:
            return v1.RequestPermissionResponse(v1.CancelledPermissionOutcome())
        return v1.RequestPermissionResponse.selected(chosen)

    async def fill_in(self, _: v1.CreateElicitationRequest) -> Any:
        answer = self.answers.get("elicitation", {"action": "decline"})
        return decode(json.dumps(answer).encode(), v1.CreateElicitationResponse)


class Steps:
    """The steps of one script, taken one by one."""

    def __init__(self, peer: Peer, lender: Lender, known: dict[str, Any]) -> None:
        self.peer = peer
        self.lender = lender
        self.known = known
        self.aside: dict[str, asyncio.Task[Any]] = {}

    def filled(self, value: Any) -> Any:
        """What a script says with `<name>` stands for what was kept under that name."""
        if isinstance(value, str):
            return re.sub(r"<(\w+)>", lambda found: str(self.known.get(found[1], found[0])), value)
        if isinstance(value, list):
            return [self.filled(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in cast("dict[str, Any]", value).items()}
        return value

    async def ask(self, method: str, params: Any) -> Any:
        row = methods(1).request(method)
        if row is None:
            return await self.peer.request_raw(method, params)
        request: Any = decode(json.dumps(params).encode(), row.params)
        if isinstance(request, v1.InitializeRequest):
            return plain(await self.peer.initialize(request))
        return plain(await self.peer.request(request))

    async def tell(self, method: str, params: Any) -> None:
        row = methods(1).notification(method)
        if row is None:
            await self.peer.notify_raw(method, params)
        else:
            notification: Notification = decode(json.dumps(params).encode(), row.params)
            await self.peer.notify(notification)

    async def take(self, step: dict[str, Any]) -> dict[str, Any]:
        params = self.filled(step.get("params", {}))
        updates = self.lender.notes["updates"]
        match step:
            case {"tell": method}:
                await self.tell(method, params)
            case {"await": kind}:
                await self.lender.until(lambda: kind in self.lender.ever_seen)
            case {"await_updates": count}:
                await self.lender.until(lambda: len(updates) >= count)
            case {"finish": name}:
                return {"result": await self.aside[name]}
            case _:
                return await self.call(step, params)
        return {}

    async def call(self, step: dict[str, Any], params: Any) -> dict[str, Any]:
        asking = asyncio.create_task(self.ask(step["call"], params))
        if "cancel_after" in step:
            await self.lender.until(lambda: len(self.lender.notes["updates"]) >= step["cancel_after"])
            await self.peer.notify(v1.CancelNotification(params["sessionId"]))
        if "aside" in step:
            self.aside[step["aside"]] = asking
            return {}
        return {"result": await asking}

    async def step(self, index: int, step: dict[str, Any]) -> dict[str, Any]:
        self.lender.answers |= step.get("answers", {})
        outcome: dict[str, Any]
        try:
            outcome = await self.take(step)
        except CapabilityMissing as missing:
            outcome = {"unsupported": f"the agent does not declare {missing.capability}"}
        except PeerError as error:
            outcome = {"error": {"code": error.code, "message": error.message, "data": error.data}}
        except Exception as error:
            outcome = {"error": {"local": f"{type(error).__name__}: {error}"}}
        result: Any = outcome.get("result") or {}
        self.known |= {name: result.get(field) for name, field in step.get("keep", {}).items()}
        notes, self.lender.notes = self.lender.notes, {"updates": [], "asked": [], "told": []}
        return {"step": index, **outcome, **notes, "known": self.known}


async def main(script: dict[str, Any], agent: list[str]) -> None:
    lender = Lender(script["folder"])
    known = {**script.get("known", {}), "folder": script["folder"]}
    async with Peer(ProcessTransport(agent), lender.handlers(), role="client", unstable=True) as peer:
        steps = Steps(peer, lender, known)
        for index, step in enumerate(script["steps"]):
            print(json.dumps(await steps.step(index, step)), flush=True)


if __name__ == "__main__":
    run(main(json.loads(Path(sys.argv[1]).read_text()), sys.argv[3:]))
