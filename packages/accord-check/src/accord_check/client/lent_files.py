"""Files that the client lends: what it reads and writes, and what it must not."""

from __future__ import annotations

import asyncio
from pathlib import Path

from accord_check.client.played import Played, refused
from accord_check.conversation import object_of

TEXT = "first line\nsecond line\nthird line\n"
NOTES, LINK, MADE = "accord-check-notes.txt", "accord-check-link.txt", "accord-check-made.txt"
SECRET = "accord-check-secret"
NOT_FOUND = -32002
READS = ("files.read.line-and-limit", "files.missing-code", "files.inside-roots", "files.escape-proof")


async def read(played: Played, folder: Path, outside: Path) -> None:
    """Read lines of a file, a missing file, and files outside of the session's folder."""
    if not played.declares("fs.readTextFile"):
        for name in READS:
            played.skip(name, "the client does not declare fs.readTextFile")
        return
    (folder / NOTES).write_text(TEXT)
    exchange = await played.ask_here("fs/read_text_file", path=str(folder / NOTES), line=2, limit=1)
    if exchange.succeeded:
        text = exchange.fields.get("content")
        is_more = isinstance(text, str) and len(text.splitlines()) > 1  # which every trace shows
        odd = isinstance(text, str) and not is_more and text.rstrip("\n") != "second line"
        wrong = f"line 2 with limit 1 is {text!r:.60}, and it is 'second line'" if odd else None
        played.judged("files.read.line-and-limit", wrong, exchange.frame, exchange.answered)
    else:
        played.skip("files.read.line-and-limit", refused(exchange))
    exchange = await played.ask_here("fs/read_text_file", path=str(folder / "accord-check-missing.txt"))
    code = object_of(exchange.error).get("code")
    said = f"was answered with {exchange.result!r:.60}" if exchange.succeeded else f"was refused with {code}"
    wrong = None if code == NOT_FOUND else f"a file that is not there {said}, not -32002"
    played.judged("files.missing-code", wrong, exchange.frame, exchange.answered)
    (outside / NOTES).write_text(SECRET)
    link = folder / LINK
    link.unlink(missing_ok=True)
    link.symlink_to(outside / NOTES)
    for name, path, what in (
        ("files.inside-roots", outside / NOTES, "a file outside of the session's folder"),
        ("files.escape-proof", link, "a link that leads outside of the session's folder"),
    ):
        exchange = await played.ask_here("fs/read_text_file", path=str(path))
        wrong = f"{what} was read" if SECRET in str(exchange.fields.get("content")) else None
        played.judged(name, wrong, exchange.frame, exchange.answered)


async def written(played: Played, folder: Path) -> None:
    """Write a file that is not there yet."""
    if not played.declares("fs.writeTextFile"):
        played.skip("files.write.creates", "the client does not declare fs.writeTextFile")
        return
    path = folder / MADE
    exchange = played.call_here("fs/write_text_file", path=str(path), content=TEXT)
    await played.owed(exchange, "lint.client.answers")
    if not exchange.succeeded:
        played.skip("files.write.creates", refused(exchange))
        return
    found = await asyncio.to_thread(lambda: path.read_text() if path.exists() else None)
    wrong = None if found == TEXT else f"{path.name} was written, and {'is not there' if found is None else 'differs'}"
    played.judged("files.write.creates", wrong, exchange.frame, exchange.answered)
