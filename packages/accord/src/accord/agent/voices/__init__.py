"""Voices, one for each version of the protocol: they make updates from what sessions, turns and tools do. PURE."""
