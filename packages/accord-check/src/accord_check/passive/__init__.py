"""Passive checks: observers that judge a conversation as it goes by, and need no control over it. One theme a file."""
