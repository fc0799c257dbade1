"""Asking a user at a terminal."""
