"""The inspector: shows traces in a browser: what was said, what it amounts to, and where the time went."""
