"""Traces of other programs as ours: acp-devtools, the Rust conductor, Zed, Toad, and bare lines of JSON."""

from accord.trace.importing.formats import FORMATS, Imported, import_trace

__all__ = ["FORMATS", "Imported", "import_trace"]
