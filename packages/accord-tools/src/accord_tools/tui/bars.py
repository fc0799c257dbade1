"""The lines around the conversation: agent and session above it, plan, queue, question and keys below. PURE."""

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
from accord_tools.presentation.session_words import STEP_SIGNS, change_numbers, shortened_path, usage_words
from accord_tools.presentation.styled_text import Cell, Paragraph, Row, Span, text_of
from accord_tools.tui import key_bindings
from accord_tools.tui.attachments import described
from accord_tools.tui.palette import rows_of
from accord_tools.tui.rewind import changed_files

if TYPE_CHECKING:
    from accord_tools.tui.chat_conversation import Conversation
    from accord_tools.tui.editor import Completion

SIGNS = {"starting": "…", "login": "!", "failed": "✗", "idle": "✓", "busy": "●", "asks": "?", "closed": "-"}
STYLES = {"login": "warning", "failed": "bad", "busy": "accent", "asks": "warning", "idle": "good"}


def top(conversation: Conversation, width: int, *, has_side: bool = False) -> Row:
    """Return the agent, the folder and the title; and the settings, at the right, unless the sidebar has them."""
    state = conversation.state
    name = label(conversation.connection.name, 30)
    folder = label(conversation.folder.name or "/", 30)
    left: list[Span] = [(f" {name}", "bold accent"), (" ▸ ", "dim"), (folder, "")]
    if state.title:
        left += [(" · ", "dim"), (label(state.title, 60), "")]
    level = conversation.connection.consent.level
    right: list[Span] = []
    if not has_side or level == "auto":
        right += [(f"allow {level}", "warning" if level == "auto" else "dim"), ("  ", "")]
    for name, value in () if has_side else settings(state):
        right += [(f"{name} {value}", ""), ("  ", "")]
    right += _usage(state)
    return _apart(left, right, width)


def settings(state: SessionState) -> list[tuple[str, str]]:
    """Return the present settings: mode, model, and the other options, by their names."""
    shown: list[tuple[str, str]] = []
    mode = next((it.name for it in state.modes if it.id == state.mode), state.mode)
    model = next((it.name for it in state.models if it.model_id == state.model), state.model)
    shown += [(name, label(str(it), 24)) for name, it in (("mode", mode), ("model", model)) if it]
    for option in state.config:
        if option.category in ("mode", "model"):
            continue
        if isinstance(option, updates.SessionConfigSelect) and option.category is not None:
            value = next((it.name for it in choices_of(option) if it.value == option.current_value), "")
            shown += [(label(option.name, 16).lower(), label(value, 16))] if value else []
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
    """Return two texts at both ends of a row; the right one is shortened first."""
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
    """Return one entry for each conversation: its number, the agent, its title and its status."""
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
    current = next((it for it in entries if it.status == "in_progress"), None)
    current = current or next((it for it in entries if it.status == "pending"), None)
    heading = f" Plan {_done(state)}/{len(entries)} "
    if not is_open:
        text = "done" if current is None else label(current.content, 300)
        return [Paragraph([(text, "")], ((heading, "accent"),), wrap="cut")]
    lines = [Paragraph([(heading.strip(), "accent")], ((" ", ""),))]
    return [*lines, *(it.under(((" ", ""),)) for it in _steps(entries, 12))]


def _steps(entries: Sequence[updates.PlanEntry], most: int) -> list[Paragraph]:
    """Return the first steps of a plan, and how many more there are."""
    lines: list[Paragraph] = []
    for entry in entries[:most]:
        sign, style = STEP_SIGNS.get(entry.status, STEP_SIGNS["pending"])
        look = "dim" if entry.status == "completed" else ""
        lines.append(Paragraph([(label(entry.content, 300), look)], ((f"{sign} ", style),), wrap="cut"))
    if len(entries) > most:
        lines.append(Paragraph([(f"and {len(entries) - most} more", "dim")]))
    return lines


def extensions(session: RemoteSession | None, shown: Iterable[type[Extension[Any]]]) -> list[Paragraph]:
    """Return the summaries of the protocol's extensions about the session, such as its goal: one line each."""
    summaries = {} if session is None else {it.label or it.name: _summary(session, it) for it in shown}
    return [
        Paragraph([(label(said, 300), "")], ((f" {label(name, 30)} ", "accent"),), wrap="cut")
        for name, said in summaries.items()
        if said
    ]


def _summary(session: RemoteSession, extension: type[Extension[Any]]) -> str:
    """Return an extension's summary; the error of one that fails, whoever wrote it."""
    try:
        return str(session.extension(extension).summary or "")
    except Exception as error:
        return f"failed: {type(error).__name__}: {error}"


def _done(state: SessionState) -> int:
    return sum(entry.status == "completed" for entry in state.plan)


LISTED = 8
"""Rows of the list of completions."""


def completions(entries: Sequence[Completion], chosen: int, width: int) -> list[Paragraph]:
    """Return the part of the completions around the chosen one, in columns; their number is at the right.

    >>> from accord_tools.tui.editor import Completion
    >>> rows = completions([Completion(f"/{n}", "does it", "") for n in range(20)], 10, 40)
    >>> rows[0].text.split(), rows[-1].text.split()
    (['/3', 'does', 'it', '↑', '3', 'more'], ['/10', 'does', 'it', '↓', '9', 'more'])
    """
    first = max(0, min(chosen - LISTED + 1, len(entries) - LISTED))
    part = entries[first : first + LISTED]
    names = min(max((cell_len(it.label) for it in part), default=0), max(20, width // 2))
    lines: list[Paragraph] = []
    for number, entry in enumerate(part, first):
        more = ""
        if number == first and first:
            more = f"↑ {first} more"
        elif number == first + len(part) - 1 and (after := len(entries) - first - len(part)):
            more = f"↓ {after} more"
        name = f" {text_of(_column(entry.label, '', names))} "
        about = _column(entry.about, "dim", max(4, width - names - len(more) - 6))
        style = "chosen" if number == chosen else ""
        row: list[Span] = [(" ", ""), (name, style), (" ", ""), *about, (" ", ""), (more, "dim")]
        lines.append(Paragraph(row, wrap="cut"))
    return lines


def _column(text: str, style: str, width: int) -> Row:
    """A text in this many columns."""
    row = _cut([(text, style)], width)
    return Cell(row).padded(row, width, cell_len)


WIDE, TEXT = 120, 102
"""Columns of the screen above which there is a sidebar, and of the conversation, beside which it may grow."""


def side_width(width: int) -> int:
    """Return the columns of the sidebar in a screen of this width; 0 if there is no room.

    >>> side_width(119), side_width(120), side_width(200)
    (0, 32, 44)
    """
    return 0 if width < WIDE else min(44, max(32, width - TEXT))


def side(conversation: Conversation, width: int) -> list[Paragraph]:
    """Return the sidebar: the session's settings, the plan, the changed files, the usage, and the queue."""
    state = conversation.state
    shown = [*_section("Session", [_pair(it, width) for it in _session(conversation)])]
    shown += _section("Plan", _steps(state.plan, SIDE_ROWS), f"{_done(state)} of {len(state.plan)}")
    changed = list(changed_files(conversation).items())
    files = [_file(shortened_path(path, str(conversation.folder)), *numbers, width) for path, numbers in changed]
    shown += _section("Files changed", files[:SIDE_ROWS], f"{len(files)}")
    last = None if conversation.last is None else conversation.last.usage
    used = [Paragraph([(words, "")], wrap="words") for words in usage_words(last, state.usage)]
    shown += _section("Usage", used)
    queue = [
        Paragraph([(label(it.text, 300), "")], ((f"{n} ", "dim"),), wrap="cut")
        for n, it in enumerate(conversation.queue, 1)
    ]
    return shown + _section("Queue", queue[:SIDE_ROWS], "ctrl+u takes one back")


SIDE_ROWS = 12
"""Rows of each section of the sidebar."""


def _section(title: str, rows: Sequence[Paragraph], about: str = "") -> list[Paragraph]:
    if not rows:
        return []
    heading = Paragraph([(title, "bold accent"), (f"  {about}" if about else "", "dim")], wrap="cut")
    return [heading, *rows, Paragraph([("", "")])]


def _session(conversation: Conversation) -> list[tuple[str, str]]:
    pairs = [("agent", conversation.connection.name), ("folder", str(conversation.folder).replace(_HOME, "~", 1))]
    return [*pairs, *settings(conversation.state), ("allow", conversation.connection.consent.level)]


_HOME = str(Path.home())


def _pair(pair: tuple[str, str], width: int) -> Paragraph:
    name, value = pair
    room = width - 9
    shown = value if len(value) <= room or name != "folder" else f"…{value[1 - room :]}"
    return Paragraph([(label(shown, 100), "")], ((f"{label(name, 8):8} ", "dim"),), wrap="cut")


def _file(path: str, added: int, removed: int, width: int) -> Paragraph:
    numbers = change_numbers(added, removed)
    room = width - sum(len(text) for text, _ in numbers)
    name = label(path, 300)
    return Paragraph([(name if len(name) <= room else f"…{name[1 - room :]}", ""), *numbers], wrap="cut")


def welcome(conversation: Conversation) -> list[Paragraph]:
    """Return the text of an empty conversation."""
    choice, name = conversation.connection.choice, label(conversation.connection.name, 60)
    about = [(f"  {label(choice.where, 200)}", "dim")] if choice.where else []
    lines: list[Sequence[Span]] = [[(name, "bold accent"), *about], [("", "")]]
    if choice.is_demo:
        lines += [[("This is the demo: it shows what agents can do, and no model answers.", "warning")]]
        lines += [[("ctrl+a", "accent"), (" chooses an agent that works with a model.", "")], [("", "")]]
    for keys, does in _FIRST_KEYS:
        lines.append([(f"{keys:8}", "accent"), (does, "dim")])
    return [Paragraph(line, ((" ", ""),), (("         ", ""),)) for line in lines]


_FIRST_KEYS = (
    ("/", "commands: /sessions, /model, /settings, and those of the agent"),
    ("@", "a file to send with the prompt; @diff is what git sees as changed"),
    ("!", "a command of the shell, whose output @out sends"),
    ("ctrl+a", "another agent"),
    ("ctrl+s", "earlier sessions of this agent"),
    ("f1", "all keys and commands"),
)


def attached(files: Sequence[Path]) -> Row | None:
    """Return the files for the next prompt; None if there are none."""
    if not files:
        return None
    spans: list[Span] = [(" + ", "accent")]
    for number, path in enumerate(files):
        spans += [(", ", "dim")] if number else []
        spans.append((described(path), ""))
    return (*spans, ("  ctrl+u takes the last one away", "dim"))


def suggested(suggestions: Sequence[str], text: str) -> Row | None:
    """Return the prompts that the agent suggests; None if there are none, or the user writes something else."""
    if not suggestions or (text and text not in suggestions):
        return None
    spans: list[Span] = [(" tab ", "accent")]
    for number, suggestion in enumerate(suggestions):
        spans += [(" · ", "dim")] if number else []
        spans.append((label(suggestion, 60), "chosen" if suggestion == text else ""))
    return tuple(spans)


def work(conversation: Conversation, now: float) -> Row | None:
    """Describe what the conversation waits for; None if nothing."""
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
