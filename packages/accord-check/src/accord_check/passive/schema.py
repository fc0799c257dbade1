"""Types: params, results and updates fit the protocol's types. Each fault is named once, with its place.

Finds every fault in a value of the protocol, each with its place. PURE.

The decoder of `schema` stops at the first fault, and reads on tolerantly where the protocol defines that. A judge needs
the opposite: all faults, even those that a receiver must forgive. So this module walks the same tree of types (`hints`)
and collects them. A union is entered by its tag first, so that a bad field makes one fault and not one for each
variant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, cast

import msgspec

from accord import DecodeError
from accord.errors import AUTH_REQUIRED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND
from accord.schema import codec, legacy
from accord.schema.base import Mark, tag_of
from accord.schema.methods import Method, may_be_empty, methods, row_for
from accord.schema.tolerant import kind
from accord.schema.type_tree import (
    NULL,
    AnyOf,
    Chosen,
    Field,
    Foreign,
    ListOf,
    MapOf,
    Named,
    Node,
    Object,
    OneWord,
    Scalar,
    Tagged,
    fields_of,
    node_of,
)
from accord_check.checks import Side
from accord_check.conversation import Exchange, Frame, Message, object_of
from accord_check.passive.handshake import is_of_other_version
from accord_check.passive.observer import Observer

Kind = Literal["misfit", "damaged", "null", "own-field", "casing", "meta", "unknown", "legacy"]
"""The kind of fault.

- `misfit`: a value that does not fit its type; the message cannot be read.
- `damaged`: the same in a field that the receiver then ignores.
- `null`: `null` for a field that may only be left out.
- `own-field`: a member that the type does not have.
- `casing`: a known name in the wrong case.
- `meta`: `_meta` that is no object.
- `unknown`: a variant or word that this version of Accord does not know, without an underscore.
- `legacy`: an older form of the protocol.
"""

MOST = 30
"""The most faults that are collected from one value."""

LEGACY = {("LoadSessionResponse", "sessionId"), ("AgentCapabilities", "mcp"), ("ResumeSessionResponse", "sessionId")}
"""Members of older drafts, by the type that has them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a value, and its place."""

    kind: Kind
    path: str
    """The place, as in `.update.content[0].text`; empty for the value itself."""
    problem: str


def faults(value: Any, hint: Any) -> list[Fault]:
    """Return all faults of a plain JSON value as this type."""
    found: list[Fault] = []
    for fault in _walk(node_of(hint), value, ""):
        found.append(fault)
        if len(found) == MOST:
            return found
    if not any(fault.kind in ("misfit", "casing") for fault in found):
        found += _of_the_whole(value, hint)
    return found


def _of_the_whole(value: Any, hint: Any) -> Iterator[Fault]:
    """Yield the faults that only the type itself knows: members that exclude or need each other."""
    try:
        codec.convert(value, hint)
    except DecodeError as error:
        yield Fault("misfit", error.path.removeprefix("$"), error.problem)


def _walk(node: Node, value: Any, path: str) -> Iterator[Fault]:
    match node:
        case Scalar():
            yield from _scalar(node, value, path)
        case OneWord():
            yield from _word(node, value, path)
        case ListOf() if not isinstance(value, list):
            yield Fault("misfit", path, f"expected a list, got {kind(value)}")
        case MapOf() | Object() | Tagged() if not isinstance(value, dict):
            yield Fault("misfit", path, f"expected an object, got {kind(value)}")
        case ListOf(item, skip_invalid):
            for index, each in enumerate(cast("list[Any]", value)):
                found = _walk(item, each, f"{path}[{index}]")
                yield from _forgiven(found) if skip_invalid else found
        case MapOf(item):
            for key, each in cast("dict[str, Any]", value).items():
                yield from _walk(item, each, f"{path}.{key}")
        case Object(cls):
            yield from _object(cls, value, path)
        case Tagged():
            yield from _tagged(node, cast("dict[str, Any]", value), path)
        case Chosen():
            yield from _chosen(node, value, path)
        case AnyOf(options):
            yield from _any_of(options, value, path)
        case Named(_, inner):
            yield from _walk(inner, value, path)
        case Foreign(type):
            yield from _of_the_whole(value, type)
        case _:
            pass


def _scalar(scalar: Scalar, value: Any, path: str) -> Iterator[Fault]:
    wanted: Any = scalar.type
    if wanted is int and type(value) is float and value.is_integer():
        value = int(value)
    fits = type(value) is wanted or (wanted is float and type(value) is int)
    if not fits:
        yield Fault("misfit", path, f"expected {_NAMES.get(wanted, 'a value')}, got {kind(value)}")
    elif scalar.least is not None and value < scalar.least:
        yield Fault("misfit", path, f"expected a number from {scalar.least:,} up, got {value}")
    elif scalar.most is not None and value > scalar.most:
        yield Fault("misfit", path, f"expected a number up to {scalar.most:,}, got {value}")
    elif scalar.shortest is not None and len(cast("str", value)) < scalar.shortest:
        yield Fault("misfit", path, "expected a string that is not empty")
    elif scalar.longest is not None and len(cast("str", value)) > scalar.longest:
        yield Fault("misfit", path, f"expected at most {scalar.longest:,} characters")


def _word(word: OneWord, value: Any, path: str) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault("misfit", path, f"expected a word, got {kind(value)}")
    elif value not in word.known:
        if (right := _recased(value, word.known)) is not None:
            yield Fault("casing", path, f"{value!r} must be written {right!r}")
        elif word.open or word.read_open:
            yield from _unknown(value, path)
        else:
            yield Fault("misfit", path, f"expected one of {', '.join(word.known)}, got {value[:60]!r}")


def _object(
    cls: type[msgspec.Struct], value: Any, path: str, *, may_have: frozenset[str] = frozenset()
) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault("misfit", path, f"expected an object, got {kind(value)}")
        return
    raw = cast("dict[str, Any]", value)
    present = legacy.rewritten(cls, raw)
    for key in raw.keys() - present.keys():
        yield Fault("legacy", f"{path}.{key}", f"{key!r} is called {legacy.RENAMED_FIELDS[cls.__name__][key]!r} today")
    known = {field.wire for field in fields_of(cls)} | {"_meta"} | may_have
    if (tag_field := cls.__struct_config__.tag_field) is not None:
        known.add(str(tag_field))
    misnamed: set[str] = set()
    for key in present.keys() - known:
        if (right := _recased(key, known)) is not None and right not in present:
            misnamed.add(right)
            yield Fault("casing", f"{path}.{key}", f"the member {key!r} must be written {right!r}")
        elif (cls.__name__, key) in LEGACY:
            yield Fault("legacy", f"{path}.{key}", f"the member {key!r} is of an older draft")
        else:
            yield Fault("own-field", f"{path}.{key}", f"{cls.__name__} has no member {key!r}")
    for field in fields_of(cls):
        if field.wire not in misnamed:
            yield from _field(field, present, path)


def _field(field: Field, raw: dict[str, Any], path: str) -> Iterator[Fault]:
    place = f"{path}.{field.wire}"
    if field.wire not in raw:
        if field.required:
            yield Fault("misfit", place, "is missing")
        return
    value = raw[field.wire]
    if field.wire == "_meta":
        if value is not None and not isinstance(value, dict):
            yield Fault("meta", place, f"expected an object, got {kind(value)}")
        return
    if value is None and Mark.DEFAULT_ON_NULL in field.marks:
        return
    found = _walk(field.node, value, place)
    if value is None and not field.required and any(True for _ in found):
        yield Fault("null", place, "is null; leave it out instead")
        return
    found = _walk(field.node, value, place)
    yield from _forgiven(found) if Mark.DEFAULT_ON_ERROR in field.marks else found


def _forgiven(found: Iterator[Fault]) -> Iterator[Fault]:
    for fault in found:
        yield Fault("damaged", fault.path, fault.problem) if fault.kind == "misfit" else fault


def _tagged(union: Tagged, value: dict[str, Any], path: str) -> Iterator[Fault]:
    place = f"{path}.{union.tag_field}"
    tag = value.get(union.tag_field)
    variants = dict(union.variants)
    if not isinstance(tag, str):
        problem = "is missing" if tag is None else f"expected a string, got {kind(tag)}"
        yield Fault("misfit", place, problem)
    elif tag in variants:
        yield from _object(variants[tag], value, path)
    elif (right := _recased(tag, variants)) is not None:
        yield Fault("casing", place, f"{tag!r} must be written {right!r}")
    elif legacy.wrapped(tag, variants, value) is not None:
        yield Fault("misfit", path, f'a content block must stand in {{"type": "content", "content": ...}}, got {tag!r}')
    elif union.open:
        yield from _unknown(tag, place)
    else:
        yield Fault("misfit", place, f"expected one of {', '.join(variants)}, got {tag[:60]!r}")


def _chosen(node: Chosen, value: Any, path: str) -> Iterator[Fault]:
    variant: Any = node.cls.__choose__(value)
    if variant is None:
        yield Fault("misfit", path, f"expected {node.cls.__name__}, got {kind(value)}")
        return
    chosen = node_of(variant)
    if not isinstance(chosen, Object):
        yield from _walk(chosen, value, path)
        return
    found = list(_object(chosen.cls, value, path, may_have=frozenset({"type"})))
    tag = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
    if any(fault.kind == "misfit" for fault in found) and node.cls.__unknown__(value) is not None:
        yield from _unknown(str(tag), f"{path}.type")
    else:
        yield from found


def _any_of(options: tuple[Node, ...], value: Any, path: str) -> Iterator[Fault]:
    if value is None and NULL in options:
        return
    rest = [option for option in options if option != NULL]
    tried: list[list[Fault]] = [list(_walk(option, value, path)) for option in rest]
    if len(tried) > 1 and all(_misfits(found, path) for found in tried):
        yield Fault("misfit", path, f"fits none of its types, got {kind(value)}")
    else:
        yield from min(tried, key=lambda found: (_misfits(found, path), len(found)))


def _misfits(found: list[Fault], path: str) -> bool:
    return any(fault.kind == "misfit" and fault.path == path for fault in found)


def _unknown(word: str, path: str) -> Iterator[Fault]:
    if not word.startswith("_"):  # extensibility: names with an underscore are free
        yield Fault("unknown", path, f"{word[:60]!r} is not known")


def _recased(word: str, known: Any) -> str | None:
    """Return the known word that differs only in case; None if there is none."""
    flat = _flat(word)
    return next((right for right in known if right != word and _flat(right) == flat), None)


def _flat(word: str) -> str:
    return re.sub(r"[_-]", "", word).lower()


_NAMES: dict[Any, str] = {str: "a string", bool: "a boolean", int: "an integer", float: "a number", type(None): "null"}


_NAMED: tuple[tuple[str, str, str], ...] = (
    # message, place, the requirement that names this fault
    ("initialize", r"\.protocolVersion$", "initialize.version.integer"),
    ("initialize answer", r"\.protocolVersion$", "initialize.version.integer"),
    ("initialize answer", r"\.authMethods\[\]\.id$", "auth.methods-advertised"),
    ("session/new", r"\.(cwd|mcpServers)$", "session.new.states-cwd-and-servers"),
    ("session/load", r"\.(cwd|mcpServers|sessionId)$", "session.load.states-cwd-and-servers"),
    ("session/resume", r"\.(cwd|mcpServers|sessionId)$", "session.resume.states-cwd-and-servers"),
    ("session/list answer", r"\.sessions\[\]\.(sessionId|cwd)$", "session.list.entries-complete"),
    (".*", r"\.configOptions\[\]\.currentValue$", "config.value-always"),
    ("session/update usage_update", r"\.update\.(used|size)$", "usage.sizes-always"),
    ("session/update usage_update", r"\.update\.cost\.(amount|currency)$", "usage.cost-complete"),
    ("session/update plan", r"\.update\.entries\[\]\.(content|priority|status)$", "plan.sent-whole"),
    ("session/prompt answer", r"\.usage\.\w+$", "usage.turn.totals-complete"),
    ("terminal/output answer", r"\.truncated$", "terminal.output.truncation-told"),
    ("elicitation/create answer", r"\.action$", "elicitation.answer.action"),
    ("elicitation/create", r"\.requestedSchema.*", "elicitation.form.flat"),
    ("elicitation/create", r"$", "elicitation.scope"),
)

_BY_KIND: dict[Kind, str] = {
    "misfit": "lint.schema.misfit",
    "damaged": "lint.schema.damaged",
    "null": "lint.schema.null-for-absent",
    "own-field": "types.no-own-fields",
    "casing": "wire.names-cased",
    "meta": "meta.is-object",
    "unknown": "lint.schema.unknown-variant",
    "legacy": "lint.legacy",
}


class _ExtensionTypes(NamedTuple):
    """The messages and updates of the extensions that are installed here."""

    messages: Mapping[str, Method]
    updates: Mapping[str, type[Any]]


@cache
def _of_extensions() -> _ExtensionTypes:
    from accord.extensions import installed_extensions  # reads the metadata of installed distributions

    found = installed_extensions()
    return _ExtensionTypes(
        {it.__method__: row_for(it, "protocol") for extension in found for it in extension.messages},
        {tag_of(it) or "": it for extension in found for it in extension.updates},
    )


_MEMBERS = ("jsonrpc", "id", "method", "params", "result", "error")


class Schema(Observer):
    def frame(self, frame: Frame) -> None:
        members = frame.members
        if members.get("jsonrpc") != "2.0":
            return
        for name, value in members.items():
            if name not in _MEMBERS and value is not None:  # a serialiser may write every member that it knows
                self.found("types.no-own-fields", f"a message has the member {name!r} beside those of JSON-RPC", frame)

    def request(self, exchange: Exchange) -> None:
        self._method(exchange, is_request=True)
        row = exchange.row or _of_extensions().messages.get(exchange.method)
        if row is not None and not self._offers_two_versions(exchange):
            self._value(exchange.method, exchange.params, row.params, exchange.frame)

    def notification(self, message: Message) -> None:
        self._method(message, is_request=False)
        row = message.row or _of_extensions().messages.get(message.method)
        if row is not None:
            update = object_of(message.params.get("update"))
            kind = update.get("sessionUpdate")
            label = f"{message.method} {kind}" if isinstance(kind, str) else message.method
            if isinstance(kind, str) and (known := _of_extensions().updates.get(kind)) is not None:
                self._value(label, update, known, message.frame)
            else:
                self._value(label, message.params, row.params, message.frame)

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        row = exchange.row or _of_extensions().messages.get(exchange.method)
        if row is None or not exchange.succeeded or row.result is None:
            return
        if exchange.result is None and may_be_empty(row.result):
            self.judge("lint.result-null", f"the result of {exchange.method} is null", frame)
            return
        value = exchange.result
        if exchange.method == "initialize":
            value = legacy.capabilities_renamed(value)
        self._value(f"{exchange.method} answer", value, row.result, frame)

    def _offers_two_versions(self, exchange: Exchange) -> bool:
        """Whether it is an `initialize` that must be readable in more than one version."""
        asked = exchange.params.get("protocolVersion")
        return exchange.method == "initialize" and isinstance(asked, int) and asked > 1

    def _method(self, message: Message, *, is_request: bool) -> None:
        method, by, frame = message.method, message.by, message.frame
        self.saw("lint.method.wrong-side", by)
        self.saw("lint.method.wrong-kind", by)
        self.saw("extension.method-underscore", by)
        if message.row is not None:
            other: Side = "client" if by == "agent" else "agent"
            if message.row.to not in (other, "protocol", "proxy"):
                self.found(
                    "lint.method.wrong-side", f"{method} was sent to the {other}, which does not handle it", frame
                )
            return
        table = methods(self.conversation.version)
        swapped = table.notification(method) if is_request else table.request(method)
        if swapped is not None:
            what = ("a request", "a notification") if is_request else ("a notification", "a request")
            self.found("lint.method.wrong-kind", f"{method} was sent as {what[0]}; it is {what[1]}", frame)
        elif not method.startswith(("_", "$/")) and not _is_of_any_version(method):
            self.found("extension.method-underscore", f"the method {method!r} is not of the protocol", frame)

    def _value(self, label: str, value: Any, hint: Any, frame: Frame) -> None:
        for name in ("lint.schema.misfit", "lint.schema.damaged", "types.no-own-fields", "meta.is-object"):
            self.saw(name, frame.by)
        self.saw("wire.names-cased", frame.by)
        self._saw_named(label, value, frame.by)
        for fault in faults(value, hint):
            if _is_judged_elsewhere(fault, label) or self._is_of_other_version(fault, value):
                continue
            place = re.sub(r"\[\d+\]", "[]", fault.path)
            name = _named(label, place, fault)
            where = fault.path.removeprefix(".") or "the whole"
            self.found(name, f"{label}: {where} {_said(fault)}", frame, same=f"{label} {place} {fault.problem}")

    def _is_of_other_version(self, fault: Fault, value: Any) -> bool:
        """Whether it is an update of another version, which has a check of its own."""
        kind = object_of(object_of(value).get("update")).get("sessionUpdate")
        is_tag = fault.kind == "unknown" and fault.path == ".update.sessionUpdate"
        return is_tag and isinstance(kind, str) and is_of_other_version(kind, self.conversation.version)

    def _saw_named(self, label: str, value: Any, by: Side) -> None:
        """Count the values that could have shown a fault that a requirement names."""
        for message, _, name in _NAMED:
            if name == "config.value-always":
                if isinstance(value, dict) and "configOptions" in value:
                    self.saw(name, by)
            elif message == label and name != "usage.cost-complete":
                self.saw(name, by)


def _named(label: str, place: str, fault: Fault) -> str:
    if fault.kind in ("misfit", "damaged"):
        for message, pattern, name in _NAMED:
            if re.fullmatch(message, label) and re.match(pattern, place):
                return name
    return _BY_KIND[fault.kind]


def _is_judged_elsewhere(fault: Fault, label: str) -> bool:
    """Whether another check has this fault: a word of an open set, a result that is empty, a version, a fixed field."""
    if fault.kind == "unknown":
        return fault.path.endswith((".category", ".stopReason"))
    if fault.path == "":
        return label.removesuffix(" answer") in EMPTY
    if fault.path == ".protocolVersion":
        return fault.problem == "is missing"
    if fault.path == ".connectionId":  # rfd-streamable-http-websocket-transport demands it over HTTP
        return label == "initialize answer"
    if label == "session/update session_info_update":
        return fault.path in (".update.cwd", ".update.additionalDirectories")
    return label == "initialize answer" and fault.path.endswith("].command")


def _said(fault: Fault) -> str:
    return fault.problem if fault.problem.startswith("is ") else f"- {fault.problem}"


def _is_of_any_version(method: str) -> bool:
    """Whether another version of the protocol, or an older draft, has this method."""
    name = legacy.RENAMED_METHODS.get(method, method)
    return any(table.request(name) or table.notification(name) for table in (methods(1), methods(2)))


EMPTY = {
    "authenticate": "auth.authenticate.empty-result",
    "auth/login": "auth.authenticate.empty-result",
    "logout": "auth.logout.empty-result",
    "auth/logout": "auth.logout.empty-result",
    "session/close": "session.close.empty-result",
    "session/delete": "session.delete.empty-result",
}


class Results(Observer):
    def answer(self, exchange: Exchange, frame: Frame) -> None:
        if exchange.row is None:
            return
        if exchange.succeeded:
            if exchange.method in EMPTY and exchange.by == "client":
                value = exchange.result
                is_empty = value is None or isinstance(value, dict)
                verdict = is_empty or f"the result of {exchange.method} is {value!r:.60}"
                self.judge(EMPTY[exchange.method], verdict, frame)
            return
        code = object_of(exchange.error).get("code")
        misfits = [fault for fault in faults(exchange.params, exchange.row.params) if fault.kind == "misfit"]
        if misfits and code not in (AUTH_REQUIRED, NOT_FOUND, INVALID_REQUEST, METHOD_NOT_FOUND):
            wrong = f"{exchange.method} without fitting params was refused with {code}, not -32602"
            self.judge("jsonrpc.error.invalid-params", code == INVALID_PARAMS or wrong, exchange)
