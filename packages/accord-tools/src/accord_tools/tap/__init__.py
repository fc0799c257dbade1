"""The tap: records the messages between a client and an agent, and stores the records where they are found again."""

from accord_tools.tap.trace_folder import KeptTrace, LiveTap, announced, kept_traces, live_taps, traces_folder

__all__ = ["KeptTrace", "LiveTap", "announced", "kept_traces", "live_taps", "traces_folder"]
