"""A session as Markdown, for logs, reports and notebooks; and Markdown made safe for a page, such as a notebook. PURE.

A notebook shows Markdown as a page. Raw HTML in it could run scripts or imitate the notebook, and an image would be
fetched at once from an address that the agent chose, including any data in the address. So `safe` makes `<` before a
tag, and `!` before an image, character references, except in code.

What is code? If this module and the notebook disagreed, text that is code here would be HTML there. So the result
contains only marks of code that this module wrote: fences are written again, longer than any run of their character in
the code, and with the same indentation on every line; a span of code is one pair of single backticks on a line; every
other backtick, and every other run of `~`, becomes character references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accord.printable import fenced
from accord.schema.base import Unknown
from accord.session import Message, SessionState, ToolCallState, updates

_STATUS_MARKS = {"completed": "done", "failed": "failed", "cancelled": "cancelled"}


def markdown(state: SessionState) -> str:
    """The conversation: prompts, thoughts, tool calls and answers in order, and the current plan."""
    parts = [f"# {state.title}"] if state.title else []
    parts += [_message(entry) if isinstance(entry, Message) else _tool_call(entry) for entry in state.timeline]
    if state.plan:
        parts.append("\n".join(["## Plan", "", *map(_step, state.plan)]))
    return "\n\n".join(part for part in parts if part) + "\n"


def turn_markdown(tool_calls: Sequence[ToolCallState], text: str, stop_reason: str) -> str:
    """Return a turn as Markdown: its tool calls, the agent's text, and why it stopped if it was not done."""
    parts = [*map(_tool_call, tool_calls), text]
    if stop_reason != "end_turn":
        parts.append(f"*({_escaped(stop_reason)})*")
    return "\n\n".join(part for part in parts if part) + "\n"


def _message(message: Message) -> str:
    text = "\n\n".join(_block(block) for block in message.content)
    if message.speaker == "agent":
        return text
    asked = "**You** (refused; the agent continues without this): " if message.refused else "**You:** "
    heading = asked if message.speaker == "user" else "*Thinking:* "
    return "\n".join(f"> {line}".rstrip() for line in (heading + text).split("\n"))


def _block(block: updates.ContentBlock) -> str:
    match block:
        case updates.TextContent(text=text):
            return text
        case updates.ResourceLink(name=name, uri=uri):
            return f"[{_escaped(name)}](<{uri}>)"
        case updates.ImageContent(mime_type=kind):
            return f"*(an image, {kind})*"
        case updates.AudioContent(mime_type=kind):
            return f"*(a sound, {kind})*"
        case updates.EmbeddedResource(resource=updates.TextResourceContents(uri=uri, text=text)):
            return f"`{uri}`\n\n{fenced(text)}"
        case updates.EmbeddedResource(resource=resource):
            return f"`{resource.uri}`"
        case updates.SkillReference(name=name):
            return f"*(the skill {_escaped(name)})*"
        case Unknown(tag=tag):
            return f"*({tag})*"


def _tool_call(call: ToolCallState) -> str:
    heading = f"- **{_escaped(call.title or call.id)}** ({call.kind}, {_STATUS_MARKS.get(call.status, 'not finished')})"
    details = "\n\n".join(_result(content) for content in call.content)
    return heading if not details else f"{heading}\n\n{_indented(details)}"


def _result(content: updates.ToolCallContent) -> str:
    match content:
        case updates.Content(content=block):
            return _block(block)
        case updates.TextDiff(path=path, deleted=True, old_text=None):
            return f"*(deleted {_escaped(path)})*"
        case updates.TextDiff() as diff:
            return fenced(diff.unified(), "diff")
        case updates.Terminal(terminal_id=terminal):
            return f"*(terminal {terminal})*"
        case updates.SessionReference(session_id=session):
            return f"*(session {_escaped(session)})*"
        case Unknown(tag=tag):
            return f"*({tag})*"
        case changed:
            return _changes(changed)


def _changes(diff: updates.Diff) -> str:
    """Return the patch of a diff of version 2; without one, the kind of change of each file."""
    if diff.patch is not None:
        return fenced(diff.patch.text.rstrip("\n"), "diff")
    return "\n\n".join(f"*({_escaped(line)})*" for line in diff.summary)


def _step(entry: updates.PlanEntry) -> str:
    return f"- [{'x' if entry.status == 'completed' else ' '}] {entry.content}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.split("\n"))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", text.replace("\n", " "))


FENCE = re.compile(r"(?P<indent> {0,3})(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<language>[\w+#.-]*).*")
SPAN = re.compile(r"(?<![\\`])`([^`|\\$]+)`(?!`)")
TAG = re.compile(r"<(?=[A-Za-z/!?])")
QUOTE = "> "


def safe(markdown: str) -> str:
    """Return the same Markdown without raw HTML and images.

    >>> safe("Use `List<int>`, <b>not</b> ![x](https://example.org/?secret)")
    'Use `List<int>`, &lt;b>not&lt;/b> &#33;[x](https://example.org/?secret)'
    """
    return "\n".join(_lines(_separated(markdown)))


def _separated(markdown: str) -> list[str]:
    """Split into lines, at every character that a renderer may treat as a line end."""
    return re.split(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", markdown)


def _lines(lines: list[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        quote, line = _quoted(lines[at])
        at += 1
        match = FENCE.fullmatch(line)
        if match is None:
            yield quote + _prose(line)
            continue
        code: list[str] = []
        closing = re.compile(rf" {{0,3}}{match['fence'][0]}{{{len(match['fence'])},}}[ \t]*")
        while at < len(lines):
            its_quote, line = _quoted(lines[at])
            if its_quote != quote:
                break
            at += 1
            if closing.fullmatch(line):
                break
            code.append(line)
        yield from (quote + match["indent"] + line for line in _fenced(code, match))


def _quoted(line: str) -> tuple[str, str]:
    """Split off the mark of a quotation, if the line is in one."""
    if line.startswith(QUOTE):
        return QUOTE, line[len(QUOTE) :]
    return (QUOTE, "") if line == QUOTE.rstrip() else ("", line)


def _fenced(code: list[str], opening: re.Match[str]) -> Iterator[str]:
    longest = max((len(run) for line in code for run in re.findall("`{3,}", line)), default=2)
    fence = "`" * (longest + 1)
    yield fence + opening["language"]
    for line in code:
        yield line.removeprefix(opening["indent"])
    yield fence


def _prose(line: str) -> str:
    """A line outside of fences: spans of code stay, marks of code and of HTML elsewhere become references."""
    parts: list[str] = []
    end = 0
    for span in SPAN.finditer(line):
        parts += [_text(line[end : span.start()]), span[0]]
        end = span.end()
    return "".join([*parts, _text(line[end:])])


def _text(text: str) -> str:
    text = TAG.sub("&lt;", text).replace("`", "&#96;").replace("![", "&#33;[")
    return re.sub("~{3,}", lambda run: "&#126;" * len(run[0]), text)
