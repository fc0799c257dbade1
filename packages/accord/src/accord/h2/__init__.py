"""HTTP/2 (RFC 9113) without I/O, on the library `hpack` (extra `http2`).

It is written as a library of its own and imports nothing of Accord. `h2_connection` is one connection of either role:
bytes in, events out. `h2_frames` splits and writes frames, and `h2_headers` reads and writes header blocks.
"""
