"""A trace as one HTML file, which shows it in any browser without a server.

The file contains the page and the answers of the API, packed with gzip. The page asks `stored.js` instead of a server.
Its modules are in an import map, because a page that is opened as a file may not load others. Recognisable secrets are
masked, as in a recording.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from accord import AccordError
from accord.redaction import mask_urls, masked
from accord.schema.codec import encode
from accord.trace.trace_file import open_private
from accord_tools.inspector.api import conversation_at, latencies, spans_of, summary_of
from accord_tools.inspector.folded_turn import Folds
from accord_tools.inspector.library import status_of
from accord_tools.inspector.message_rows import Fields, detail_of, row_of, rows_of_runs
from accord_tools.inspector.trace_index import TraceIndex
from accord_tools.inspector.trace_lines import TraceReader, frame_of
from accord_tools.inspector.trace_search import TraceFindings

MOST = 50 * 1024 * 1024
"""Bytes of a trace that fits into one page."""

POLICY = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src blob: data:"
"""Only scripts of the page, and nothing from another machine: the contents of the trace stay in the page."""

IMPORT = re.compile(r'from "\./([a-z]+)\.js"')


def export_html(source: Path, target: Path, *, secrets: bool = False) -> int:
    """Write a trace as one HTML file that only its owner can read; returns how many messages it has.

    Recognisable secrets are masked unless `secrets`.
    """
    if source.stat().st_size > MOST:
        raise AccordError(f"{source} is too large for one page: {source.stat().st_size:,} bytes, at most {MOST:,}")
    with tempfile.TemporaryDirectory(prefix="accord-export-") as folder:
        index = TraceIndex(TraceReader(_copy(source, Path(folder), secrets=secrets)))
        try:
            index.grow_whole()
            page = _page(encode(_answers(index, source)))
        finally:
            index.reader.close()
    with open_private(target) as file:
        file.write(page)
    return len(index)


def _copy(source: Path, folder: Path, *, secrets: bool) -> Path:
    """A copy of the trace in which recognisable secrets are masked."""
    reader = TraceReader(source)
    copy = folder / "trace.jsonl"
    try:
        data = reader.read(0, reader.size)
    finally:
        reader.close()
    if len(data) > MOST:
        raise AccordError(f"{source} is too large for one page: {len(data):,} bytes, at most {MOST:,}")
    whole = data[: data.rfind(b"\n") + 1]
    copy.write_bytes(whole if secrets else b"".join(_masked(line) for line in whole.splitlines(keepends=True)))
    return copy


def _masked(line: bytes) -> bytes:
    frame = frame_of(line)
    if frame is None:
        return mask_urls(line.decode("utf-8", "replace")).encode("utf-8", "replace")
    replaced = masked(frame)
    if replaced is None or frame not in line:
        return line
    return line.replace(frame, replaced, 1)


def _answers(index: TraceIndex, source: Path) -> dict[str, Any]:
    """The answers to all that the page asks."""
    folds, findings = Folds(index), TraceFindings(index)
    while findings.is_behind:
        findings.step()
    count = len(index)
    status = status_of(index, findings)
    runs = rows_of_runs(index, 0, count, findings.worst)
    return {
        "listed": {
            "id": "exported",
            "name": source.name,
            "folder": "",
            "size": status["size"],
            "live": False,
            "peer": "",
        },
        "summary": {"name": source.name, **summary_of(index), **status},
        "rows": [row_of(index, row, 1, findings.worst) for row in range(count)],
        "runs": list(index.columns.runs),
        "texts": {row[Fields.NUMBER]: row[Fields.DETAIL] for row in runs if row[Fields.RUN] > 1},
        "errors": list(index.columns.errors),
        "latency": latencies(index),
        "frames": [{**detail_of(index, row), "findings": findings.plain(row)} for row in range(count)],
        "turns": index.turns,
        "spans": [spans_of(index, number) for number in range(len(index.turns))],
        "conversations": [
            conversation_at(index, folds, _last_row(index, number)) for number in range(len(index.turns))
        ],
    }


def _last_row(index: TraceIndex, number: int) -> int:
    """Return the last row of a turn, including rows after its end."""
    turn = index.turns[number]
    after = index.sessions[turn.session].next_turn(turn)
    end = len(index) if after is None else after.first
    rows = (row for row in range(end - 1, turn.first, -1) if index.columns.session[row] == turn.session)
    return next(rows, turn.first)


def _page(answers: bytes) -> bytes:
    folder = resources.files("accord_tools.inspector") / "static"
    modules = {
        entry.name.removesuffix(".js"): entry.read_text("utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".js")
    }
    urls = {
        f"inspector/{name}": _data_url("text/javascript", _with_bare_imports(text)) for name, text in modules.items()
    }
    page = (folder / "index.html").read_text("utf-8")
    style = (folder / "style.css").read_text("utf-8")
    packed = base64.b64encode(gzip.compress(answers, 9)).decode("ascii")
    start = (
        'const {Stored} = await import("inspector/stored");'
        'globalThis.accordExport = {source: new Stored(document.getElementById("trace").textContent)};'
        'await import("inspector/main");'
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<link rel="icon" href="{_data_url("image/svg+xml", (folder / "icon.svg").read_text("utf-8"))}">'
        f"<style>{style}</style>"
        f'<script type="importmap">{json.dumps({"imports": urls})}</script>'
    )
    body = f'<script type="text/plain" id="trace">{packed}</script><script type="module">{start}</script>'
    page = re.sub(r'<link rel="icon".*\n|<link rel="stylesheet".*\n|<script type="module".*\n', "", page)
    return page.replace("</head>", head + "</head>").replace("</body>", body + "</body>").encode()


def _with_bare_imports(module: str) -> str:
    """Return a module whose imports are names of the import map: a module in a URL has no relative paths."""
    return IMPORT.sub(r'from "inspector/\1"', module)


def _data_url(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode('ascii')}"
