"""A conversation as a file: Markdown, HTML or JSON, by the file's name."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from accord.schema import codec
from accord.services.files.atomic import replace_own
from accord.state import Message

if TYPE_CHECKING:
    from accord.tui.conversation import Conversation

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{max-width:60em;margin:2em auto;font:16px/1.5 sans-serif}}pre{{white-space:pre-wrap;overflow-wrap:anywhere}}
.user{{background:#eef;padding:.5em 1em}}.thought,.tool{{color:#666}}</style></head><body><h1>{title}</h1>
{body}</body></html>
"""


def export(conversation: Conversation, path: Path) -> Path:
    """Write a conversation; returns the file. Raises ValueError for a name whose end says no format, or that exists."""
    writers = {".md": _markdown, ".html": _html, ".json": _json}
    path = path.expanduser()
    if path.suffix not in writers:
        raise ValueError(f"cannot export to {path.name!r}: the name must end with {', '.join(writers)}")
    if path.exists():
        raise ValueError(f"{path} exists; name another file")
    replace_own(path, writers[path.suffix](conversation).encode("utf-8", "replace"))
    return path


def _markdown(conversation: Conversation) -> str:
    return "" if conversation.session is None else conversation.session.markdown()


def _html(conversation: Conversation) -> str:
    """The texts as they are, escaped: nothing of an agent acts in the page."""
    parts: list[str] = []
    for entry in conversation.state.timeline:
        if isinstance(entry, Message):
            parts.append(f'<pre class="{entry.speaker}">{html.escape(entry.text)}</pre>')
        else:
            text = "\n".join(it for it in (f"{entry.title} ({entry.status})", entry.text) if it)
            parts.append(f'<pre class="tool">{html.escape(text)}</pre>')
    return _PAGE.format(title=html.escape(conversation.title), body="\n".join(parts))


def _json(conversation: Conversation) -> str:
    entries = [
        {"type": "message" if isinstance(entry, Message) else "tool_call", **_plain(entry)}
        for entry in conversation.state.timeline
    ]
    said = {"title": conversation.title, "folder": str(conversation.folder), "entries": entries}
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


def _plain(entry: object) -> dict[str, object]:
    value = codec.plain(entry)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
