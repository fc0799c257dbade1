"""Generates a picture and a sound."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator

SIZE = 96
RATE = 8000
CHORD = (261.63, 329.63, 392.00)
"""C major: three notes in accord."""


def picture(size: int = SIZE) -> bytes:
    """A PNG: two rings, linked."""
    rows = b"".join(b"\0" + bytes(_row(y, size)) for y in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)  # 8 bits, RGB
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def sound(seconds: float = 0.6) -> bytes:
    """A WAV: a chord that fades."""
    samples = bytes(_sample(n / RATE, seconds) for n in range(int(RATE * seconds)))
    form = struct.pack("<HHIIHH", 1, 1, RATE, RATE, 1, 8)  # PCM, mono, 8 bits
    body = b"WAVE" + _part(b"fmt ", form) + _part(b"data", samples)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _row(y: int, size: int) -> Iterator[int]:
    for x in range(size):
        yield from _colour(x / size, y / size)


def _colour(x: float, y: float) -> tuple[int, int, int]:
    left, right = _ring(x - 0.38, y - 0.5), _ring(x - 0.62, y - 0.5)
    if left and (y < 0.5 or not right):  # over the other above, under it below: linked
        return (38, 110, 180)
    if right:
        return (230, 140, 40)
    shade = int(250 - 20 * y)
    return (shade, shade, min(255, shade + 5))


def _ring(x: float, y: float) -> bool:
    return 0.2 < math.hypot(x, y) < 0.28


def _sample(second: float, seconds: float) -> int:
    wave = sum(math.sin(2 * math.pi * note * second) for note in CHORD) / len(CHORD)
    return int(128 + 120 * wave * (1 - second / seconds))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _part(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data
