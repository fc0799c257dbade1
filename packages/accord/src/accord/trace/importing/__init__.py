"""Traces of other programs as ours: acp-devtools, the Rust conductor, Zed, Toad, and bare lines of JSON."""

from accord.trace.importing.formats import FORMATS, import_trace
from accord.trace.importing.imported import Imported

__all__ = ["FORMATS", "Imported", "import_trace"]
