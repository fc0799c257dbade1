"""Passive checks: observers that judge a conversation, and need no control over it. One theme a file."""
