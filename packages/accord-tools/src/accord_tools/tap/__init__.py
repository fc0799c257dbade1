"""The tap: records what a client and an agent say to each other, and keeps the records where they are found again."""

from accord_tools.tap.kept import KeptTrace, kept_traces, traces_folder
from accord_tools.tap.live import LiveTap, announced, live_taps

__all__ = ["KeptTrace", "LiveTap", "announced", "kept_traces", "live_taps", "traces_folder"]
