"""PNG images as pixels, with the standard library alone. PURE.

Agents send screenshots and charts, nearly all as PNG. Other formats are named and not drawn. An image comes from an
agent: its size is bounded before anything is inflated, and what is malformed gives None.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from accord.placeholders import png_size

MOST_PIXELS = 4_000_000
"""Of an image that is drawn."""

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Values of each pixel, by the colour type."""

Pixel = tuple[int, int, int]


class Bitmap(NamedTuple):
    """An image: rows of bytes, and what their values mean."""

    width: int
    height: int
    rows: list[bytes]
    channels: int
    colours: list[Pixel]
    """The palette of an image whose pixels are numbers of colours."""

    def pixel(self, x: int, y: int) -> Pixel:
        """The colour at this place; what is transparent is dark."""
        row = self.rows[min(y, self.height - 1)]
        place = min(x, self.width - 1) * self.channels
        values = row[place : place + self.channels]
        if self.colours:
            return self.colours[values[0]] if values[0] < len(self.colours) else (0, 0, 0)
        if self.channels < 3:
            values = bytes((values[0],) * 3) + values[1:]
        if len(values) == 4:
            opacity = values[3]
            return (values[0] * opacity // 255, values[1] * opacity // 255, values[2] * opacity // 255)
        return (values[0], values[1], values[2])


def decoded(data: bytes) -> Bitmap | None:
    """The image; None if it is not a PNG that can be drawn: 8 bits a channel, not interlaced, not too large."""
    size = png_size(data)
    if size is None or len(data) < 33 or not 0 < size[0] * size[1] <= MOST_PIXELS:
        return None
    depth, kind, interlaced = data[24], data[25], data[28]
    if depth != 8 or kind not in _CHANNELS or interlaced:
        return None
    packed, colours = bytearray(), list[Pixel]()
    for name, content in _chunks(data):
        if name == b"IDAT":
            packed += content
        elif name == b"PLTE":
            colours = [(content[it], content[it + 1], content[it + 2]) for it in range(0, len(content) - 2, 3)]
    width, height = size
    stride = width * _CHANNELS[kind]
    try:
        raw = zlib.decompressobj().decompress(bytes(packed), (stride + 1) * height)
    except zlib.error:
        return None
    if len(raw) < (stride + 1) * height or (kind == 3 and not colours):
        return None
    rows = _unfiltered(raw, stride, height, _CHANNELS[kind])
    return None if rows is None else Bitmap(width, height, rows, _CHANNELS[kind], colours if kind == 3 else [])


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 8
    while place + 8 <= len(data):
        length = int.from_bytes(data[place : place + 4])
        yield data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        place += 12 + length


def _unfiltered(raw: bytes, stride: int, height: int, size: int) -> list[bytes] | None:
    """The rows without PNG's filters; None for a filter that does not exist."""
    before = bytes(stride)
    rows: list[bytes] = []
    for number in range(height):
        start = number * (stride + 1)
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        if kind > 4:
            return None
        if kind == 1:
            for place in range(size, stride):
                row[place] = (row[place] + row[place - size]) & 255
        elif kind == 2:
            row = bytearray((a + b) & 255 for a, b in zip(row, before, strict=True))
        elif kind:
            for place in range(stride):
                left = row[place - size] if place >= size else 0
                corner = before[place - size] if place >= size else 0
                guess = (left + before[place]) // 2 if kind == 3 else _paeth(left, before[place], corner)
                row[place] = (row[place] + guess) & 255
        before = bytes(row)
        rows.append(before)
    return rows


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda it: abs(guess - it))
