"""Lent services, and forms: terminals end, output reports its exit, files respect limits, answers fit."""

from __future__ import annotations

import base64
import binascii
from typing import Any, cast
from urllib.parse import urlsplit

from accord.redaction import MASK
from accord_check.conversation import Exchange, Frame, Message, Update, object_of, objects
from accord_check.passive.observer import Observer


class TerminalsAndForms(Observer):
    def begin(self) -> None:
        self._made: dict[str, Frame] = {}
        self._released: dict[str, Frame] = {}
        self._exited: set[str] = set()
        self._questions: set[Any] = set()

    def request(self, exchange: Exchange) -> None:
        if exchange.by == "client":
            if exchange.method == "session/prompt":
                for block in objects(exchange.params.get("prompt")):
                    self._binary(block, "content.client-binary-base64", exchange.frame)
            return
        terminal = exchange.params.get("terminalId")
        if exchange.method.startswith("terminal/") and isinstance(terminal, str):
            gone = self._released.get(terminal)
            verdict = not gone or f"{exchange.method} for the terminal {terminal!r}, which was released"
            self.judge("lint.terminal.used-after-release", verdict, exchange)
        if exchange.method == "elicitation/create":
            self._question(exchange)

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        if exchange.by != "agent":
            return
        terminal = exchange.params.get("terminalId")
        if exchange.method.startswith("terminal/") and isinstance(terminal, str):
            self._terminal(exchange, frame, terminal)
        if not exchange.succeeded:
            return
        if exchange.method == "terminal/create" and isinstance(made := exchange.fields.get("terminalId"), str):
            self._made[made] = exchange.frame
            self._released.pop(made, None)
            self._exited.discard(made)
        elif exchange.method == "fs/read_text_file":
            self._read(exchange)
        elif exchange.method == "elicitation/create":
            self._form(exchange)

    def notification(self, message: Message) -> None:
        if message.method == "elicitation/complete" and message.by == "agent":
            given = message.params.get("elicitationId")
            verdict = given in self._questions or f"no question has the elicitationId {given!r}"
            self.judge("elicitation.complete.carries-id", verdict, message)

    def update(self, update: Update) -> None:
        content = update.fields.get("content")
        for fields in [object_of(content)] if isinstance(content, dict) else objects(content):
            if fields.get("type") == "terminal":
                self._embedded(update, fields)
            inner = fields.get("content")
            self._binary(object_of(inner) or fields, "content.agent-binary-base64", update.frame)

    def end(self) -> None:
        for terminal, frame in self._made.items():
            verdict = terminal in self._released or f"the terminal {terminal!r} was never released"
            self.judge("terminal.released", verdict, frame)

    def _terminal(self, exchange: Exchange, frame: Frame, terminal: str) -> None:
        if terminal in self._released and self._released[terminal].number < exchange.frame.number:
            if exchange.method != "terminal/release":
                worked = f"{exchange.method} worked for the terminal {terminal!r}, which was released"
                wrong = worked if exchange.succeeded else None
                self.judge("terminal.release.ends-id", wrong, exchange)
            return
        if not exchange.succeeded:
            return
        if exchange.method == "terminal/release":
            self._released[terminal] = frame
        elif exchange.method == "terminal/wait_for_exit":
            self._exited.add(terminal)
            is_given = exchange.fields.get("exitCode") is not None or exchange.fields.get("signal") is not None
            self.judge("terminal.wait.until-exit", is_given or "neither exitCode nor signal", frame)
        elif exchange.method == "terminal/output" and terminal in self._exited:
            is_given = exchange.fields.get("exitStatus") is not None
            verdict = is_given or f"the output of {terminal!r} has no exitStatus, although it has exited"
            self.judge("terminal.output.exit-status", verdict, frame)

    def _embedded(self, update: Update, block: dict[str, Any]) -> None:
        terminal = block.get("terminalId")
        if not isinstance(terminal, str) or self.conversation.version != 1:
            return
        if update.is_replayed:
            return  # a replay shows terminals of the past
        meta = update.fields.get("_meta")
        if isinstance(meta, dict) and "terminal_info" in meta:
            return  # a terminal of the agent's own, which clients recognise by this mark
        wrong = None
        if terminal not in self._made:
            wrong = f"the terminal {terminal!r} was not created"
        elif terminal in self._released:
            wrong = f"the terminal {terminal!r} was embedded after its release"
        self.judge("tool.terminal.embedded-before-release", wrong, update)

    def _read(self, exchange: Exchange) -> None:
        limit, text = exchange.params.get("limit"), exchange.fields.get("content")
        if isinstance(limit, int) and isinstance(text, str):
            lines = len(text.splitlines())
            verdict = lines <= limit or f"{lines} lines for the limit {limit}"
            self.judge("files.read.line-and-limit", verdict, exchange)

    def _question(self, exchange: Exchange) -> None:
        url = exchange.params.get("url")
        if exchange.params.get("mode") != "url" or not isinstance(url, str):
            return
        self._questions.add(exchange.params.get("elicitationId"))
        parts = _parts(url)
        is_valid = parts is not None and parts[0] != ""
        self.judge("elicitation.url.valid", is_valid or f"the url is {url[:80]!r}", exchange)
        if is_valid and parts is not None:
            local = parts[1] in ("localhost", "127.0.0.1", "::1")
            plain = parts[0] == "http" and not local
            self.judge("elicitation.url.https", not plain or f"the url is {url[:80]!r}", exchange)

    def _form(self, exchange: Exchange) -> None:
        schema = exchange.params.get("requestedSchema")
        fields = exchange.fields
        if fields.get("action") != "accept" or not isinstance(schema, dict):
            return
        wrong = _misfit_of_form(object_of(schema), object_of(fields.get("content")))
        self.judge("elicitation.form.validated", wrong, exchange)

    def _binary(self, block: dict[str, Any], name: str, frame: Frame) -> None:
        data = block.get("data") if block.get("type") in ("image", "audio") else None
        resource = block.get("resource")
        if block.get("type") == "resource":
            data = object_of(resource).get("blob")
        if isinstance(data, str):
            self.judge(name, is_base64(data) or f"the data begins with {data[:40]!r}", frame)


def _misfit_of_form(form: dict[str, Any], given: dict[str, Any]) -> str | None:
    """Return why an answer does not fit its form; None if it does. Masked values fit everything."""
    required = form.get("required")
    for name in cast("list[Any]", required) if isinstance(required, list) else []:
        if name not in given:
            return f"the required field {name!r} is missing"
    for name, field in object_of(form.get("properties")).items():
        kind, value = object_of(field).get("type"), given.get(name)
        types = _FORM_TYPES.get(kind)
        is_truth = isinstance(value, bool) and kind != "boolean"
        if name in given and value != MASK and types is not None and (is_truth or not isinstance(value, types)):
            return f"the field {name!r} is {value!r:.60}, not of type {kind}"
    return None


_FORM_TYPES: dict[Any, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


def _parts(url: str) -> tuple[str, str] | None:
    try:
        split = urlsplit(url)
    except ValueError:
        return None
    return split.scheme.lower(), split.hostname or ""


def is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
