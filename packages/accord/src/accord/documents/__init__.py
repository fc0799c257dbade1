"""Texts that a client edits and an agent mirrors: positions in three encodings, changes, edits, and URIs. PURE."""
