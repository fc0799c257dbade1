"""The differences from the TypeScript SDK's validators that we keep, and why. `docs/design/differences.md` shows them.
A row explains differences by their cause (`how` a value was broken, and `where`), or, where `how` says nothing, by the
place at which the two results differ. Names are those of types, unions and fields; `*` stands for anything.
"""

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.differential.comparison import READ_DIFFERENTLY, THEY_REFUSE, WE_REFUSE, Difference
from tests.schema.nodes import ADDRESS


@dataclass(frozen=True)
class Row:
    versions: tuple[int, ...]
    where: tuple[str, ...]
    ours: str
    theirs: str
    why: str
    how: tuple[str, ...] = ()
    types: tuple[str, ...] = ("*",)
    verdicts: tuple[str, ...] = (WE_REFUSE, THEY_REFUSE, READ_DIFFERENTLY)
    holding: tuple[str, ...] = ()
    """Only differences of values whose JSON has one of these."""

    def fits(self, difference: Difference) -> bool:
        return (
            difference.version in self.versions
            and difference.verdict in self.verdicts
            and _is_one_of(difference.type, self.types)
        )

    def is_cause_of(self, difference: Difference) -> bool:
        broken = bool(self.how) and _is_one_of(difference.how, self.how)
        return self.fits(difference) and broken and _is_one_of(difference.broken, self.where)

    def is_at(self, place: str, difference: Difference) -> bool:
        holds = not self.holding or any(text in json.dumps(difference.value) for text in self.holding)
        return self.fits(difference) and not self.how and holds and _is_one_of(place, self.where)


def _is_one_of(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def explained(difference: Difference) -> set[Row]:
    """The rows that explain this difference; none where something in it has no row."""
    causes = {row for row in ROWS if row.is_cause_of(difference)}
    if causes:
        return causes
    by_place = [{row for row in ROWS if row.is_at(place, difference)} for place in difference.places]
    return set().union(*by_place) if all(by_place) else set()


NEWER = (
    "AuthAccount.description",
    "AvailableCommand",
    "ClientCapabilities.session",
    "ClientSessionCapabilities.*",
    "CompactionUpdate.status",
    "ContentBlock",
    "Cursor*",
    "*Anchor*",
    "*.configOptions",
    "*.cursorId",
    "*.idempotencyKey",
    "InitialSessionConfig*",
    "PlanMarkdown.path",
    "PromptCapabilities.skill",
    "PromptSuggestion*",
    "SessionCapabilities.options",
    "SessionReference*",
    "SessionUpdate",
    "Skill*",
    "StringPropertySchema.pattern",
    "ToolCallContent",
)
"""What the schema that we follow has otherwise than the one of the SDK, which is older."""

ROWS = (
    Row(
        versions=(1, 2),
        where=NEWER,
        ours="as in schema 1.20.0",
        theirs="as in schema 1.15.1",
        why="the newest SDK has an older schema; the row goes when it has the same",
    ),
    Row(
        versions=(2,),
        types=("SessionUpdate", "UpdateSessionNotification"),
        where=("*",),
        holding=('"replay_complete"', '"cursor_update"', '"prompt_suggestions_update"'),
        ours="`replay_complete`, `cursor_update` and `prompt_suggestions_update` are known",
        theirs="unknown, and not looked at",
        why="the newest SDK has an older schema",
    ),
    Row(
        versions=(1, 2),
        where=("*.content", "*.prompt", "*.summary", "Model._meta", "Initialize*Request.capabilities"),
        holding=('"type": "skill"', '"type": "session"', '"session": {'),
        ours="skills, sessions as content, and `session` of clients of version 2 are known",
        theirs="unknown",
        why="the newest SDK has an older schema, and content is read as version 2 has it",
    ),
    Row(
        versions=(1,),
        how=("unknown tag", "unknown variant"),
        where=(
            "AuthMethod",
            "ContentBlock",
            "McpServer",
            "NesSuggestion",
            "PlanUpdateContent",
            "RequestPermissionOutcome",
            "SessionConfigOption",
            "SessionUpdate",
            "ToolCallContent",
        ),
        ours="kept as `Unknown`",
        theirs="an error; in a list, dropped",
        why="a newer peer's update should still be shown, and a proxy must not lose it",
    ),
    Row(
        versions=(1,),
        where=("Annotations.audience", "Annotations.priority", "ResourceLink.icons", "ResourceLink.size", "Role"),
        ours="roles are kept, a priority lies between 0 and 1, a size is not negative, a link may have icons",
        theirs="an unknown role is dropped, numbers have no bounds, icons are an unknown key",
        why="content has one class for both versions, and is read as version 2 has it",
    ),
    Row(
        versions=(1,),
        how=("unknown word",),
        where=("PromptResponse.stopReason",),
        ours="kept as its string",
        theirs="an error",
        why="the turn has ended, whatever the reason",
    ),
    Row(
        versions=(1,),
        how=("unknown word",),
        where=(
            "AgentCapabilities.positionEncoding",
            "ClientCapabilities.positionEncodings",
            "NesDiagnostic.severity",
            "NesDiagnosticSeverity",
            "NesDocumentDidChangeCapabilities.syncKind",
            "NesRejectReason",
            "NesTriggerKind",
            "PositionEncodingKind",
            "RejectNesNotification.reason",
            "SuggestNesRequest.triggerKind",
            "TextDocumentSyncKind",
        ),
        ours="kept as its string",
        theirs="an error",
        why="next edit suggestions are still a proposal; values may be added",
    ),
    Row(
        versions=(1,),
        how=("wrong kind",),
        where=("NesOpenFile.lastFocusedMs", "NesUserAction.timestampMs", "*.version"),
        types=("Nes*", "*Nes*", "Did*"),
        ours="a fraction is an error, as a string is",
        theirs="any number",
        why="versions and milliseconds are whole numbers in the proposal's schema",
    ),
    Row(
        versions=(1, 2),
        how=("older name",),
        where=(
            "CurrentModeUpdate",
            "DiffPatch",
            "DisableProviderRequest",
            "McpServerAcp",
            "PlanItems",
            "PlanMarkdown",
            "PlanRemoved",
            "ProviderInfo",
            "SetProviderRequest",
        ),
        ours="read as today's field",
        theirs="missing",
        why="the protocol's pages show these names, and agents were written from them",
    ),
    Row(
        versions=(1,),
        where=("TextDiff.deleted",),
        ours="kept",
        theirs="dropped",
        why="it is proposed in diff-delete, and tells a deleted file from an empty one",
    ),
    Row(
        versions=(1,),
        where=("*SessionResponse.models",),
        ours="kept",
        theirs="dropped",
        why="many agents offer their models in no other way",
    ),
    Row(
        versions=(1,),
        where=("ElicitationUrlMode.url",),
        ours="any text",
        theirs="must be a URL",
        why="a wrong format should not lose a message; the program that opens the address must check it anyway",
    ),
    Row(
        versions=(1, 2),
        how=("too large", "too small"),
        where=("IntegerPropertySchema.*", "ResourceLink.size", "TerminalExitStatus.exitCode"),
        ours="an error beyond 64 bits",
        theirs="any whole number, rounded",
        why="the schema says int64, and a rounded number is another number",
    ),
    Row(
        versions=(1,),
        where=("CreateElicitationRequest.requestId",),
        types=("CreateElicitationRequest",),
        ours="a request with both scopes keeps both; each must be valid",
        theirs="the first valid scope; the other is dropped, valid or not",
        why="the schema does not say which one counts, and nothing is dropped silently",
    ),
    Row(
        versions=(1, 2),
        where=("CreateElicitationRequest.toolCallId",),
        types=("CreateElicitationRequest",),
        ours="kept beside a `requestId` too",
        theirs="dropped without a `sessionId`",
        why="the schema allows more fields in a scope than it names",
    ),
    Row(
        versions=(1,),
        how=("wrong kind",),
        where=("CreateElicitationRequest.sessionId",),
        types=("CreateElicitationRequest",),
        ours="an error, even beside a valid `requestId`",
        theirs="read by its `requestId`",
        why="a session id of the wrong type is an error that its sender should learn of",
    ),
    Row(
        versions=(1, 2),
        where=("*",),
        types=(
            "DiffPathChange",
            "DiffPathPairChange",
            "ElicitationAcceptAction",
            "ElicitationFormMode",
            "ElicitationUrlMode",
            "SessionConfigBoolean",
            "SessionConfigSelect",
        ),
        ours="the whole object",
        theirs="only the fields that make this variant",
        why="their validators are parts that are never used alone; the unions made of them are compared",
    ),
    Row(
        versions=(1,),
        where=("*Capabilities.nes", "*Capabilities.positionEncoding*", "Initialize*.*Capabilities"),
        types=("InitializeProxy*",),
        ours="kept",
        theirs="dropped, though kept in `initialize`",
        why="a proxy forwards what its client and its agent declared",
    ),
    Row(
        versions=(1,),
        how=("wrong kind", "null"),
        where=("AuthMethodTerminal.args", "AuthMethodTerminal.env"),
        ours="an error; in a list, dropped",
        theirs="read as a method that the agent handles itself",
        why="a known tag with a bad payload is an error; no user could log in with that method",
    ),
    Row(
        versions=(1,),
        how=("*",),
        where=("AuthEnvVar", "AuthEnvVar.*", "AuthMethodEnvVar", "AuthMethodEnvVar.*"),
        ours="an error; in a list, dropped",
        theirs="read as a method that the agent handles itself",
        why="`env_var` is in the proposal and sent by real agents, so it is a known tag here",
    ),
    Row(
        versions=(1,),
        where=("AuthMethod", "AuthMethodEnvVar.link", "AuthMethodEnvVar.vars"),
        ours="an `env_var` method with its variables",
        theirs="a method that the agent handles itself",
        why="`env_var` is in the proposal and sent by real agents: its user must be told which variables to set",
    ),
    Row(
        versions=(1, 2),
        where=("IdleStateUpdate.error",),
        ours="kept beside any stop reason, read tolerantly",
        theirs="read with the reason `error`, dropped with other known reasons, kept unread with unknown ones",
        why="one flat type; an error that was sent should be shown",
    ),
    Row(
        versions=(2,),
        where=("SessionStateUpdate.error", "SessionStateUpdate.stopReason", "SessionStateUpdate.usage"),
        ours="kept in every state",
        theirs="dropped in states without it; in the others read as `IdleStateUpdate` is",
        why="one flat type; an error that was sent should be shown",
    ),
    Row(
        versions=(2,),
        how=("empty string",),
        where=("*.baseUrl", "*.src", "*.uri", "*.url"),
        ours="any text",
        theirs="must be a URL; in a list, dropped",
        why="a wrong format should not lose a message; the program that opens the address must check it anyway",
    ),
    Row(
        versions=(2,),
        where=("SessionInfo.updatedAt", "SessionInfoUpdate.updatedAt"),
        ours="any text",
        theirs="dropped unless it is an RFC 3339 time",
        why="the time is for people, and another format is still readable",
    ),
    Row(
        versions=(2,),
        how=("empty list",),
        where=(
            "PromptRequest.prompt",
            "RequestPermissionRequest.options",
            "SessionConfigSelectOptions",
            "StringMultiSelectItems.enum",
            "StringPropertySchema.enum",
            "StringPropertySchema.oneOf",
            "TitledMultiSelectItems.anyOf",
        ),
        ours="an empty list",
        theirs="an error; in a list, dropped",
        why="the reader can decide what an empty list means",
    ),
    Row(
        versions=(2,),
        how=("missing tag",),
        where=("AvailableCommand", "AvailableCommandInput", "ReplayFrom"),
        ours="read as the only variant",
        theirs="an error; in a list, dropped",
        why="there is only one variant, and version 1 has no tag here",
    ),
    Row(
        versions=(2,),
        how=("missing tag", "another tag"),
        where=("ElicitationSchema",),
        ours="read as the schema of an object",
        theirs="an error",
        why="a form is always an object; in version 1 the tag is optional, and a wrong one is accepted",
    ),
    Row(
        versions=(2,),
        where=("Error.data", "ErrorData"),
        ours="kept whole",
        theirs="only the fields of the known shape",
        why="the data of an error helps to find its cause",
    ),
    Row(
        versions=(2,),
        where=("CreateElicitationRequest", "ElicitationMode"),
        types=("CreateElicitationRequest",),
        verdicts=(THEY_REFUSE,),
        ours="a `null` scope counts as absent",
        theirs="a `null` scope counts as present, so there are two",
        why="null and absent are the same unless the protocol distinguishes them",
    ),
)

VALID_TEXTS = dict.fromkeys(("baseUrl", "src", "uri", "url"), ADDRESS) | {"updatedAt": "2026-11-21T08:37:00Z"}
"""For fields whose format is in a row above: so that its difference does not hide others."""
FILLED_LISTS = frozenset({"anyOf", "enum", "oneOf", "options", "prompt"})
"""Lists that are not empty, for the same reason."""


@dataclass(frozen=True)
class TextRow:
    """A difference that lies in the JSON text, whatever its type."""

    text: str
    ours: str
    theirs: str
    why: str


TEXT_ROWS = (
    TextRow(
        "a byte order mark at the start",
        ours="read without it",
        theirs="an error",
        why="it carries no information, and some editors write it",
    ),
    TextRow(
        "a number like `1e400`",
        ours="an error",
        theirs="infinite, and `null` when written",
        why="an error is better than a number that becomes `null`",
    ),
    TextRow(
        "a whole number of 40 digits in `_meta`",
        ours="kept to the last digit",
        theirs="rounded",
        why="`_meta` must not be changed",
    ),
    TextRow(
        "a whole number of 5,000 digits",
        ours="an error",
        theirs="infinite, and `null` when written",
        why="the time to read such a number grows with the square of its length",
    ),
    TextRow(
        "a key `__proto__` in `_meta`",
        ours="kept",
        theirs="dropped",
        why="it is an ordinary key outside JavaScript",
    ),
)


def tables() -> str:
    """The tables of `docs/design/differences.md`."""
    lines = ["| version | type or field | input | Accord | TypeScript SDK | reason |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {_words(row.versions)} | {_code(row.where if row.where != ('*',) else row.types)} "
        f"| {_words(row.how) or 'any'} | {row.ours} | {row.theirs} | {row.why} |"
        for row in ROWS
    ]
    lines += ["", "| JSON text | Accord | TypeScript SDK | reason |", "|---|---|---|---|"]
    lines += [f"| {row.text} | {row.ours} | {row.theirs} | {row.why} |" for row in TEXT_ROWS]
    return "\n".join(lines).replace("| * |", "| any error |") + "\n"


def _words(words: tuple[object, ...]) -> str:
    return ", ".join(map(str, words))


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
