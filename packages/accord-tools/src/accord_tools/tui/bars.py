"""The lines around the conversation: who and what above it, plan, queue, question and keys below. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from accord import Extension, RemoteSession, updates
from accord.printable import label
from accord.session import SessionState, choices_of
from accord_tools.presentation.appearance import FRAMES
from accord_tools.presentation.quantities import minutes
from accord_tools.presentation.session_words import STEP_SIGNS
from accord_tools.presentation.styled_text import Paragraph, Row, Span
from accord_tools.tui import key_bindings
from accord_tools.tui.attachments import described
from accord_tools.tui.palette import rows_of

if TYPE_CHECKING:
    from accord_tools.tui.chat_conversation import Conversation

SIGNS = {"starting": "…", "login": "!", "failed": "✗", "idle": "✓", "busy": "●", "asks": "?", "closed": "-"}
STYLES = {"login": "warning", "failed": "bad", "busy": "accent", "asks": "warning", "idle": "good"}


def top(conversation: Conversation, width: int) -> Row:
    """The agent, the folder and the title; and what is set, at the right."""
    state = conversation.state
    name = label(conversation.connection.name, 30)
    folder = label(conversation.folder.name or "/", 30)
    left: list[Span] = [(f" {name}", "bold accent"), (" ▸ ", "dim"), (folder, "")]
    if state.title:
        left += [(" · ", "dim"), (label(state.title, 60), "")]
    level = conversation.connection.consent.level
    right: list[Span] = [(f"allow {level}", "warning" if level == "auto" else "dim"), ("  ", "")]
    for text in settings(state):
        right += [(text, ""), ("  ", "")]
    right += _usage(state)
    return _apart(left, right, width)


def settings(state: SessionState) -> list[str]:
    """What is set now: mode, model, and the other options by their values."""
    shown: list[str] = []
    mode = next((it.name for it in state.modes if it.id == state.mode), state.mode)
    model = next((it.name for it in state.models if it.model_id == state.model), state.model)
    shown += [label(str(it), 24) for it in (mode, model) if it]
    for option in state.config:
        if option.category in ("mode", "model"):
            continue
        if isinstance(option, updates.SessionConfigSelect) and option.category is not None:
            value = next((it.name for it in choices_of(option) if it.value == option.current_value), "")
            shown += [label(value, 16)] if value else []
    return shown[:4]


def _usage(state: SessionState) -> list[Span]:
    usage = state.usage
    if usage is None:
        return []
    spans: list[Span] = []
    if usage.size:
        share = round(100 * usage.used / usage.size)
        spans.append((f"ctx {share}%", "warning" if share >= 80 else "dim"))
    if usage.cost and usage.cost.amount:
        unit = "$" if usage.cost.currency == "USD" else f"{label(usage.cost.currency, 5)} "
        spans.append((f" {unit}{usage.cost.amount:.2f}", "dim"))
    return [*spans, (" ", "")]


def _apart(left: Sequence[Span], right: Sequence[Span], width: int) -> Row:
    """Two texts at both ends of a row; the right one gives way."""
    used = sum(cell_len(text) for text, _ in left)
    kept = list(right)
    while kept and used + sum(cell_len(text) for text, _ in kept) + 1 > width:
        kept.pop(0)
    room = width - used - sum(cell_len(text) for text, _ in kept)
    if room < 0:
        return _cut(left, width)
    return (*left, (" " * room, ""), *kept)


def _cut(spans: Sequence[Span], width: int) -> Row:
    return rows_of(Paragraph(spans, wrap="cut"), width)[0]


def tabs(conversations: Sequence[Conversation], front: Conversation | None, width: int) -> Row:
    """One entry for each conversation: its number, the agent, its title and how it stands."""
    room = max(12, width // max(1, len(conversations)) - 1)
    spans: list[Span] = []
    for number, one in enumerate(conversations, 1):
        sign = SIGNS[one.status]
        text = label(f"{number} {one.connection.name}: {one.title}", room - 4)
        spans.append((f" {text} ", "chosen" if one is front else "dim"))
        spans.append((f"{sign} ", STYLES.get(one.status, "dim")))
    return _cut(spans, width)


def plan(state: SessionState, *, is_open: bool) -> list[Paragraph]:
    """The plan: how far it is and the current step; or all steps."""
    entries = state.plan
    if not entries:
        return []
    done = sum(entry.status == "completed" for entry in entries)
    current = next((it for it in entries if it.status == "in_progress"), None)
    current = current or next((it for it in entries if it.status == "pending"), None)
    heading = f" Plan {done}/{len(entries)} "
    if not is_open:
        text = "done" if current is None else label(current.content, 300)
        return [Paragraph([(text, "")], ((heading, "accent"),), wrap="cut")]
    lines = [Paragraph([(heading.strip(), "accent")], ((" ", ""),))]
    for entry in entries[:12]:
        sign, style = STEP_SIGNS.get(entry.status, STEP_SIGNS["pending"])
        look = "dim" if entry.status == "completed" else ""
        lines.append(Paragraph([(label(entry.content, 300), look)], ((f" {sign} ", style),), wrap="cut"))
    if len(entries) > 12:
        lines.append(Paragraph([(f" and {len(entries) - 12} more", "dim")]))
    return lines


def extensions(session: RemoteSession | None, shown: Iterable[type[Extension[Any]]]) -> list[Paragraph]:
    """What extensions of the protocol say about the session, such as its goal: one line each."""
    told = {} if session is None else {it.label or it.name: session.extension(it).summary for it in shown}
    return [
        Paragraph([(label(said, 300), "")], ((f" {label(name, 30)} ", "accent"),), wrap="cut")
        for name, said in told.items()
        if said
    ]


def attached(files: Sequence[Path]) -> Row | None:
    """The files that go with the next prompt; None if there are none."""
    if not files:
        return None
    spans: list[Span] = [(" + ", "accent")]
    for number, path in enumerate(files):
        spans += [(", ", "dim")] if number else []
        spans.append((described(path), ""))
    return (*spans, ("  ctrl+u takes the last one away", "dim"))


def suggested(suggestions: Sequence[str], text: str) -> Row | None:
    """The prompts that the agent suggests; None if there are none, or the user writes something else."""
    if not suggestions or (text and text not in suggestions):
        return None
    spans: list[Span] = [(" tab ", "accent")]
    for number, suggestion in enumerate(suggestions):
        spans += [(" · ", "dim")] if number else []
        spans.append((label(suggestion, 60), "chosen" if suggestion == text else ""))
    return tuple(spans)


def work(conversation: Conversation, now: float) -> Row | None:
    """What the conversation waits for; None if nothing."""
    status = conversation.status
    until = " until you have answered" if status == "asks" else ""
    queued = f"  {len(conversation.queue)} queued{until} (ctrl+u takes one back)" if conversation.queue else ""
    name = label(conversation.connection.name, 30)
    if status == "starting":
        line = conversation.connection.stderr[-1] if conversation.connection.stderr else ""
        return ((" … ", "accent"), (f"starting {name}", ""), (f"  {label(line, 200)}", "dim"), (queued, "dim"))
    if conversation.is_busy:
        since = now if conversation.busy_since is None else conversation.busy_since
        seconds = int(now - since)
        frame = FRAMES[seconds % len(FRAMES)]
        word = "stopping" if conversation.is_stopping else "working"
        return ((f" {frame} ", "accent"), (f"{word} {minutes(seconds)}", ""), (queued, "dim"))
    return ((" ", ""), (queued.strip(), "dim")) if queued else None


def foot(width: int) -> Row:
    """The most used keys."""
    spans: list[Span] = [(" ", "")]
    for number, (key, word) in enumerate(key_bindings.footer(width)):
        spans += [("  ", "")] if number else []
        spans += [(key, "accent"), (f" {word}", "dim")]
    return _cut(spans, width)
