"""The side of a client."""
