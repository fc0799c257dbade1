"""The work of an agent as lines for people: tool calls, plans, notices, subagents, usage, written files. PURE.

    session updates, in order ─▶ Work.lines ─▶ Paragraphs: texts with a meaning, of which a display makes rows

An append-only display shows each tool call once, when it is finished, and each step of a plan when it is done. A
beginning is a *passing* line: a terminal shows it beside its spinner, and any other display as a line of its own. All
texts are made safe for a terminal here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from accord import Unknown, updates, v1
from accord.printable import label, printable
from accord.session import ToolCallState
from accord.session.placeholders import placeholder
from accord.session.values import size_of
from accord_tools.presentation.command_output import shortened, shown_output
from accord_tools.presentation.diffs import FileDiff, unified
from accord_tools.presentation.quantities import counted
from accord_tools.presentation.session_words import (
    SEVERITIES,
    STEP_SIGNS,
    TOOL_SIGNS,
    shortened_path,
    tool_title,
    usage_words,
)
from accord_tools.presentation.styled_text import Paragraph, Row, Span, Wrap, rows_of

if TYPE_CHECKING:
    from accord import RemoteSubagent
    from accord.services import AgentWrite

TITLE = 300
"""Columns of a title or a notice."""
FILES = 5
"""Changed files of one tool call that are named."""
STEPS = 50
"""Steps of a plan that are shown."""
DETAILS, FAILURE = 20, 5
"""Lines of a tool call's output or of one change: with details, and for a failed call."""
DETAIL_COLUMNS = 500
OPEN, FINISHED = 100, 1_000
"""Unfinished tool calls that are kept, and ids of finished ones."""
LARGEST = 1024 * 1024
"""Bytes of an unfinished tool call; of a larger one only the title is kept."""


KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

MARGIN: Row = (("  ", ""),)


def line_of(*spans: Span, wrap: Wrap = "words", is_passing: bool = False) -> Paragraph:
    """Return a line for people; the rows after its first are indented."""
    return Paragraph(spans, (), MARGIN, wrap, is_passing=is_passing)


def _keep(kept: dict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> None:
    """Store a value as the newest, and at most this many."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


class Work:
    """Folds the updates of a session into lines.

    `folder` is the session's folder, to which paths are relative. With `details`, changes and outputs are shown too.
    `failure_of` returns the ending of a command that failed, by the id of its terminal. `is_cancelled` returns whether
    a tool call ended because its turn was cancelled: an agent of version 1 can only report that it failed.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        details: bool = False,
        failure_of: Callable[[str], str | None] = lambda _: None,
        is_cancelled: Callable[[v1.ToolCallId], bool] = lambda _: False,
    ) -> None:
        self._folder = os.fspath(folder)
        self._details = details
        self._failure_of = failure_of
        self._is_cancelled = is_cancelled
        self._calls: dict[v1.ToolCallId, ToolCallState] = {}
        self._shown: dict[v1.ToolCallId, None] = {}
        """Finished calls: agents send updates about them all the same."""
        self._plans: dict[str, list[updates.PlanEntry]] = {}
        self._subagents: dict[v1.SessionId, str] = {}
        """The titles of subagents: an update may leave it out."""

    def lines(self, update: updates.Update) -> Iterator[Paragraph]:
        """Return the lines that this update adds; none for messages and thoughts."""
        match update:
            case updates.ToolCallProgress() | updates.ToolCallContentChunk():
                yield from self._tool_call(update)
            case updates.PlanUpdate(plan=plan):
                yield from self._named_plan(plan)
            case v1.PlanRemoved(plan_id=plan_id):
                known = self._plans.pop(plan_id, None)
                if known is not None:
                    yield self._noted("a plan was removed")
            case v1.Notice():
                yield self._notice(update)
            case updates.CompactionUpdate():
                yield from self._compaction(update)
            case updates.SubagentUpdate():
                yield from self._subagent(update)
            case v1.CurrentModeUpdate(current_mode_id=mode):
                yield self._noted(f"mode: {label(mode, TITLE)}")
            case Unknown() if self._details:
                yield self._noted(f"an update of an unknown kind: {label(str(update.raw), TITLE)}")
            case _:
                return

    def rest(self) -> Iterator[Paragraph]:
        """The tool calls that were never finished, at the end."""
        for call in self._calls.values():
            yield self._titled(TOOL_SIGNS["cancelled"], call, [(" not finished", "dim")])
        self._calls.clear()

    @property
    def running(self) -> str:
        """The title of the tool call that began last and is not finished; empty if all are finished."""
        return label(next(reversed(self._calls.values())).title, TITLE) if self._calls else ""

    # Tool calls

    def _tool_call(self, update: updates.ToolCallUpdate | updates.ToolCallContentChunk) -> Iterator[Paragraph]:
        if update.tool_call_id in self._shown:
            if getattr(update, "status", None) not in ("pending", "in_progress"):
                return
            del self._shown[update.tool_call_id]  # it begins again
        known = self._calls.pop(update.tool_call_id, None)
        call = (known or ToolCallState(update.tool_call_id)).updated(update)
        if call.is_finished:
            if self._is_cancelled(call.id):
                call = replace(call, status="cancelled")
            _keep(self._shown, call.id, None, FINISHED)
            yield from self._finished(call)
            return
        if size_of(call) > LARGEST:
            call = ToolCallState(call.id, call.title[:TITLE], call.kind, call.status)
        _keep(self._calls, call.id, call, OPEN)
        if known is None:
            yield self._titled(STEP_SIGNS["in_progress"], call, is_passing=True)

    def _finished(self, call: ToolCallState) -> Iterator[Paragraph]:
        changes = [(shortened_path(it.path, self._folder), FileDiff(it.old_text, it.new_text)) for it in call.diffs]
        status, why = call.outcome(self._failure_of)
        is_alone = len(changes) == 1
        end = self._change(*changes[0], call.title) if is_alone else []
        end += [(" cancelled", "dim")] * (status == "cancelled")
        end += [(f" failed, {why}", "bad")] if why else []
        yield self._titled(TOOL_SIGNS.get(status, TOOL_SIGNS["completed"]), call, end)
        for path, change in changes[:FILES]:
            if not is_alone:
                yield line_of(*self._change(path, change)[1:]).under(MARGIN)
            if self._details:
                yield from _details(shortened(unified(change.lines[: DETAILS + 1]), DETAILS, len(change.lines)))
        if len(changes) > FILES:
            yield line_of((f"and {len(changes) - FILES:,} more files", "dim")).under(MARGIN)
        if self._details or status == "failed":
            yield from self._output(call, DETAILS if self._details else FAILURE)

    def _change(self, path: str, change: FileDiff, title: str = "") -> list[Span]:
        """A file and the numbers of its change, after blanks; a file that the title names is not named again."""
        return [*([] if path in title else [("  ", ""), (label(path, TITLE), "")]), *change.summary]

    def _titled(
        self, sign: tuple[str, str], call: ToolCallState, end: Sequence[Span] = (), *, is_passing: bool = False
    ) -> Paragraph:
        return line_of((f"{sign[0]} ", sign[1]), (tool_title(call, TITLE), ""), *end, is_passing=is_passing)

    def _output(self, call: ToolCallState, most: int) -> Iterator[Paragraph]:
        for part in call.content:
            if isinstance(part, v1.Content) and not isinstance(part.content, v1.TextContent | Unknown):
                yield line_of((placeholder(part.content), "dim")).under(MARGIN)
        yield from _details(shown_output(call.text, most))

    # Plans

    def _named_plan(self, plan: updates.PlanUpdateContent) -> Iterator[Paragraph]:
        match plan:
            case updates.PlanItems(plan_id=plan_id, entries=entries):
                yield from self._plan(plan_id, entries)
            case updates.PlanMarkdown(plan_id=plan_id, content=content, path=path):
                self._plans[plan_id] = []
                yield line_of(("Plan", "bold"), (f" {label(path, TITLE)}" if path else "", "dim"))
                for line in islice(printable(content[: STEPS * TITLE]).split("\n"), STEPS):
                    yield line_of((line.expandtabs(4), "")).under(MARGIN)
            case _:
                return

    def _plan(self, plan_id: str, entries: Sequence[updates.PlanEntry]) -> Iterator[Paragraph]:
        """Return a whole plan when its steps change; afterwards each step that is begun or done."""
        before = self._plans.get(plan_id)
        _keep(self._plans, plan_id, list(entries[:STEPS]), OPEN)
        if before is None or [it.content for it in before] != [it.content for it in entries[:STEPS]]:
            yield from self._whole_plan(entries)
            return
        done = sum(entry.status == "completed" for entry in entries)
        for old, new in zip(before, entries, strict=False):
            if new.status == old.status:
                continue
            if new.status == "completed":
                yield self._step(new, [(f"  {done} of {len(entries)}", "dim")])
            else:
                yield self._step(new)._replace(is_passing=True)

    def _whole_plan(self, entries: Sequence[updates.PlanEntry]) -> Iterator[Paragraph]:
        if entries:
            yield line_of(("Plan", "bold"))
        for entry in entries[:STEPS]:
            yield self._step(entry).under(MARGIN)
        if len(entries) > STEPS:
            yield line_of((f"and {len(entries) - STEPS:,} more steps", "dim")).under(MARGIN)

    def _step(self, entry: updates.PlanEntry, end: Sequence[Span] = ()) -> Paragraph:
        symbol, style = STEP_SIGNS.get(entry.status, STEP_SIGNS["pending"])
        return line_of((f"{symbol} ", style), (label(entry.content, TITLE), ""), *end)

    # The rest

    def _notice(self, notice: v1.Notice) -> Paragraph:
        style = SEVERITIES.get(notice.severity, "accent")
        more = f": {label(notice.description, TITLE)}" if notice.description else ""
        return line_of(("• ", style), (label(notice.title, TITLE), style), (more, ""))

    def _compaction(self, update: updates.CompactionUpdate) -> Iterator[Paragraph]:
        texts = {"in_progress": "shortening the context", "completed": "the context was shortened"}
        failed = f"the context was not shortened: {label(str(update.error or update.status), TITLE)}"
        text = texts.get(str(update.status), failed)
        yield self._noted(text)._replace(is_passing=update.status == "in_progress")

    def _subagent(self, update: updates.SubagentUpdate) -> Iterator[Paragraph]:
        """Return lines for the beginning, the title and the end of a subagent; other updates are passing."""
        known = self._subagents.get(update.session_id, "")
        title = label(update.title if isinstance(update.title, str) else known, TITLE)
        title = title or label(update.session_id, TITLE)
        _keep(self._subagents, update.session_id, title, OPEN)
        state = update.state
        if isinstance(state, updates.IdleStateUpdate):
            yield self._noted(f"subagent {title}: {_ending(state)}")
        elif isinstance(state, updates.RequiresActionStateUpdate):
            yield self._noted(f"subagent {title}: waits for you")._replace(is_passing=True)
        elif title != known:
            yield self._noted(f"subagent {title}")

    def _noted(self, text: str) -> Paragraph:
        return line_of(("• ", "dim"), (text, "dim"))


def _ending(state: updates.IdleStateUpdate) -> str:
    """Describe how a subagent ended."""
    if state.error is not None:
        return f"failed: {label(state.error.message, TITLE)}"
    if state.stop_reason == "cancelled":
        return "cancelled"
    return "done" if state.stop_reason in (None, "end_turn") else f"done ({label(state.stop_reason, TITLE)})"


def _details(lines: Sequence[Paragraph]) -> Iterator[Paragraph]:
    """Return lines of an output or of a change, each on one row."""
    for line in lines:
        yield line_of(*rows_of(line._replace(wrap="crop"), DETAIL_COLUMNS)[0], wrap="crop").under(MARGIN)


def thought_of(update: updates.Update) -> str | None:
    """Return the agent's reasoning in this update; None for any other update."""
    content = update.content if isinstance(update, v1.AgentThoughtChunk) else None
    return content.text if isinstance(content, v1.TextContent) else None


def said_of(update: updates.Update) -> v1.ContentBlock | None:
    """Return the agent's content in this update; None for any other update."""
    return update.content if isinstance(update, v1.AgentMessageChunk) else None


NAME = 30
"""Columns of a subagent's title before its lines."""
MOST_SUBAGENTS = 100
"""Subagents whose work is followed at the same time."""
WORDS = 20_000
"""Characters of a subagent's text that are kept until it ends."""
SAID = 3
"""Lines of a subagent's text that are shown when it ends; with details, more."""
COLUMNS = 300


class SubagentWork:
    """The work of the subagents of one turn."""

    def __init__(self, work: Callable[[], Work], *, details: bool) -> None:
        self._new_work = work
        self._most = DETAILS if details else SAID
        self._work: dict[str, Work] = {}
        self._said: dict[str, str] = {}

    def lines(self, subagent: RemoteSubagent, update: updates.Update) -> Iterator[Paragraph]:
        """Return the lines that an update of a subagent adds; its text is kept."""
        if (said := said_of(update)) is not None:
            text = said.text if isinstance(said, v1.TextContent) else ""
            self._said[subagent.id] = (self._said.get(subagent.id, "") + text)[-WORDS:]
            return
        name = label(subagent.title or subagent.id, NAME)
        work = self._work.get(subagent.id) or self._new_work()
        _keep(self._work, subagent.id, work, MOST_SUBAGENTS)
        for line in work.lines(update):
            yield line._replace(spans=[(f"{name}: ", "dim"), *line.spans]).under(MARGIN)

    def ended(self, update: updates.Update) -> Iterator[Paragraph]:
        """Return a subagent's text, when its session reports its end."""
        if not isinstance(update, updates.SubagentUpdate) or not isinstance(update.state, updates.IdleStateUpdate):
            return
        self._work.pop(update.session_id, None)
        text = self._said.pop(update.session_id, "").strip()
        lines = printable(text).split("\n") if text else []
        for line in lines[: self._most]:
            yield line_of((line.expandtabs(4)[:COLUMNS], "dim")).under((*MARGIN, *MARGIN))
        if len(lines) > self._most:
            yield line_of((f"and {len(lines) - self._most:,} more lines", "dim")).under((*MARGIN, *MARGIN))


def usage_lines(turn: v1.Usage | None, context: updates.UsageUpdate | None) -> Iterator[Paragraph]:
    """Return one line for the agent's report; none if there is none."""
    if words := usage_words(turn, context):
        yield line_of((", ".join(words), "dim"))


NAMED = 50
"""Files that the summary names."""
PATH = 300


class Writes:
    """Remembers each written file: its content before the first write and after the last."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._sizes: dict[Path, tuple[bool, int]] = {}
        """Whether each file is new, and its size in bytes."""

    def add(self, change: AgentWrite) -> None:
        """Take note of a write. For `Files(on_change=...)`."""
        is_new, _ = self._sizes.get(change.path, (change.before is None, 0))
        self._sizes[change.path] = is_new, len(change.after)

    def lines(self) -> Iterator[Paragraph]:
        """Return one line for each file, after a heading; nothing if no file was written."""
        if not self._sizes:
            return
        number = len(self._sizes)
        yield line_of((f"{counted(number, 'file')} written", "bold"))
        for path, (is_new, size) in list(self._sizes.items())[:NAMED]:
            shown = path.relative_to(self._folder) if path.is_relative_to(self._folder) else path
            about = f"  {'new, ' if is_new else ''}{size:,} bytes"
            yield line_of((label(str(shown), PATH), ""), (about, "dim")).under(MARGIN)
        if number > NAMED:
            yield line_of((f"and {number - NAMED:,} more", "dim")).under(MARGIN)
