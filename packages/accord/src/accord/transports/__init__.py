"""Transports move frames; they know nothing of JSON, of requests or of ACP."""
