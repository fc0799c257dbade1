"""The inspector: shows traces in a browser: the messages, their result, and where the time went."""
