"""Files that a client lends, as its editor sees them. Page: file-system."""

from __future__ import annotations

from accord.schema.base import Model, Request, Uint32
from accord.schema.v1.session import SessionId


class ReadTextFileResponse(Model):
    """The result of `fs/read_text_file`: the text."""

    content: str


class ReadTextFileRequest(Request[ReadTextFileResponse], method="fs/read_text_file", needs="fs.read_text_file"):
    """Read a file through the client, unsaved edits included."""

    session_id: SessionId
    path: str  # absolute
    line: Uint32 | None = None  # 1-based
    limit: Uint32 | None = None  # in lines


class WriteTextFileResponse(Model):
    """The result of `fs/write_text_file`: the file is written."""


class WriteTextFileRequest(Request[WriteTextFileResponse], method="fs/write_text_file", needs="fs.write_text_file"):
    """Write a file through the client, which creates it if necessary."""

    session_id: SessionId
    path: str  # absolute
    content: str
