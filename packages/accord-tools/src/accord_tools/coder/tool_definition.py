"""`ToolDefinition`: a tool for the model and the user, and the modes that decide which uses need a question."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, Literal, TypeAlias, cast, get_type_hints

import msgspec
from msgspec import Struct

from accord import AccordError, Tool, Turn, updates, v1
from accord.agent.model_messages import ImagePart, ModelCall, ResultPart
from accord.mcp import McpTool
from accord.project.project import Project
from accord.session import ToolCallState
from accord_tools.coder.api_keys import without_secrets
from accord_tools.coder.model import Json, ModelConversation, ToolSpec
from accord_tools.coder.open_model import ModelSettings


class Mode(Struct, frozen=True, kw_only=True):
    """One way of working."""

    id: str
    name: str
    description: str
    asks: Collection[str] = ()
    """The uses that need a question: tools that change `files`, or `anything`."""
    only_reads: bool = False

    def asks_before(self, changes: str) -> bool:
        """Whether the user is asked before something that changes this."""
        return changes in self.asks


MODES = (
    Mode(
        id="ask",
        name="Ask",
        description="Asks before each change of a file and each command.",
        asks=("files", "anything"),
    ),
    Mode(id="edit", name="Edit", description="Changes files by itself; asks before commands.", asks=("anything",)),
    Mode(id="auto", name="Auto", description="Changes files and runs commands without asking."),
    Mode(id="plan", name="Plan", description="Reads only, and makes a plan.", only_reads=True),
)


def mode_of(identifier: str | None) -> Mode:
    """Return the mode with this id; the first if there is none."""
    return next((mode for mode in MODES if mode.id == identifier), MODES[0])


Changes: TypeAlias = Literal["nothing", "files", "anything"]
"""What a tool may change: a command may do anything."""


class ToolOutput(msgspec.Struct, frozen=True):
    """The output of a tool for the model."""

    text: str
    failed: bool = False
    images: list[ImagePart] = []


REFUSED = ToolOutput("The user does not allow this. Ask what to do instead, or stop.", failed=True)


class ToolDefinition(msgspec.Struct, frozen=True):
    """One tool."""

    name: str
    description: str
    arguments: type[msgspec.Struct]
    changes: Changes
    run: Callable[..., Awaitable[ToolOutput]]
    """Called with the `ToolUse`, and the arguments by their names."""

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model knows it."""
        return ToolSpec(self.name, self.description, schema_of(self.arguments))


def tool(
    description: str, changes: Changes = "nothing"
) -> Callable[[Callable[..., Awaitable[ToolOutput]]], ToolDefinition]:
    """Make a tool of a function: its name is the tool's, and the parameters after the first are the arguments."""

    def made(run: Callable[..., Awaitable[ToolOutput]]) -> ToolDefinition:
        arguments = msgspec.defstruct(run.__name__, fields_of(run)[1:])
        return ToolDefinition(run.__name__, description, arguments, changes, run)

    return made


def fields_of(function: Callable[..., Any]) -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    """Return the parameters of a function as fields of a struct; a parameter without an annotation accepts
    any value.
    """
    hints = get_type_hints(function, include_extras=True)
    named = [(it, hints.get(it.name, Any)) for it in inspect.signature(function).parameters.values()]
    return [(it.name, kind) if it.default is it.empty else (it.name, kind, it.default) for it, kind in named]


class ToolUse:
    """The context of a running tool: the turn, the mode that the user has chosen, and the user's settings.

    It also has the tools of the turn: ours, and those of MCP servers.
    """

    def __init__(
        self,
        turn: Turn[ModelConversation],
        mode: Mode,
        settings: ModelSettings,
        ours: Iterable[ToolDefinition],
        mcp: Iterable[McpTool] = (),
    ) -> None:
        self.turn = turn
        self.mode = mode
        self.settings = settings
        self._ours = {it.name: it for it in ours if it.changes == "nothing" or not mode.only_reads}
        self._mcp = _named(it for it in mcp if it.kind == "read" or not mode.only_reads)

    @property
    def project(self) -> Project:
        """The session's folders, which tools read directly. Files of the client have checks of their own."""
        return Project(self.turn.session.roots)

    async def is_allowed(
        self, tool: Tool, changes: Changes, paths: Sequence[str] = (), about: str | None = None
    ) -> bool:
        """Whether a tool may do this: a rule of the settings decides, else the mode, else the user."""
        asks = self.mode.asks_before(changes)
        if (policy := self.settings.policy) is not None:
            session = self.turn.session
            places = tuple(updates.ToolCallLocation(session.resolve(path)) for path in paths)
            call = ToolCallState(tool.id, tool.title, tool.kind or "other", locations=places)
            answer, rule = await asyncio.to_thread(policy.judge, call, cwd=session.cwd, agent=session.agent)
            if answer == "reject":
                await tool.fail(f"{rule} of the settings refuses this")
                return False
            asks = answer == "ask" if rule != "default" else asks
        return not asks or bool(await tool.ask(about=about))

    @property
    def command_variables(self) -> dict[str, str]:
        """Return variables for a command: those that contain secrets, empty.

        A client that shares our environment has our key, too, so its terminals get the same.
        """
        return without_secrets(self.settings.key_variable)

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools as a model knows them."""
        theirs = [ToolSpec(name, it.description, dict(it.input_schema)) for name, it in self._mcp.items()]
        return [*(it.spec for it in self._ours.values()), *theirs]

    async def use(self, call: ModelCall) -> ResultPart:
        """Run the model's tool call; the model gets any error, and may try something else."""
        try:
            given = await self._used(call)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            given = ToolOutput(f"The arguments do not fit: {error}", failed=True)
        except (AccordError, OSError, ValueError, TimeoutError) as error:
            given = ToolOutput(f"It failed: {error or type(error).__name__}", failed=True)
        return ResultPart(call.id, given.text, given.failed, given.images)

    async def _used(self, call: ModelCall) -> ToolOutput:
        if ours := self._ours.get(call.name):
            given = msgspec.json.decode(call.arguments or "{}", type=ours.arguments)
            return await ours.run(self, **msgspec.structs.asdict(given))
        if theirs := self._mcp.get(call.name):
            arguments = msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
            asks = self.mode.asks_before("anything") and theirs.kind != "read"
            result = await self.turn.session.mcp.call(self.turn, theirs, arguments, ask=asks)
            images = [ImagePart(it.data, it.mime_type) for it in result.content if isinstance(it, v1.ImageContent)]
            return ToolOutput(result.text or "(nothing)", result.failed, images)
        known = ", ".join([*self._ours, *self._mcp])
        return ToolOutput(f"There is no tool {call.name!r} in this mode; there are: {known}", failed=True)


def schema_of(arguments: type[msgspec.Struct]) -> Json:
    """The JSON Schema of a tool's arguments, whole and without references."""
    (schema,), components = msgspec.json.schema_components([arguments], ref_template="{name}")
    named: Json = components[schema["$ref"]]
    return cast("Json", _resolved(named, components))


def _resolved(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, dict):
        given = cast("Json", schema)
        if "$ref" in given:
            return _resolved(components[given["$ref"]], components)
        return {name: _resolved(value, components) for name, value in given.items()}
    if isinstance(schema, list):
        return [_resolved(value, components) for value in cast("list[Any]", schema)]
    return schema


LONGEST_NAME = 64
"""Characters of a tool's name that all providers take."""


def _named(tools: Iterable[McpTool]) -> dict[str, McpTool]:
    """Return tools of MCP servers by names that providers allow, each once."""
    named: dict[str, McpTool] = {}
    for it in tools:
        plain = re.sub(r"[^a-zA-Z0-9_-]", "_", f"{it.server}__{it.name}")[:LONGEST_NAME]
        name, number = plain, 1
        while name in named:
            number += 1
            name = f"{plain[: LONGEST_NAME - 4]}_{number}"
        named[name] = it
    return named
