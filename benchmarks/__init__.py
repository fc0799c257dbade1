"""Ours against every peer, in one run: `python -m benchmarks`."""
