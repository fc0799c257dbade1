"""PNG images as pixels, and pixels as PNG, with the standard library alone. PURE.

Agents send screenshots and charts, nearly all as PNG. Other formats are named and not drawn. An image comes from an
agent: its size is bounded before anything is inflated, and what is malformed gives None.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from accord.placeholders import png_size

MOST_PIXELS = 4_000_000
"""Of an image that is drawn."""

SIGNATURE = b"\x89PNG\r\n\x1a\n"

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

    def scaled(self, width: int, height: int) -> list[bytes]:
        """The image in another size: rows with three bytes for each pixel. What is transparent is dark."""
        columns = [min(self.width - 1, int((x + 0.5) * self.width / width)) for x in range(width)]
        return [
            self._picked(self.rows[min(self.height - 1, int((y + 0.5) * self.height / height))], columns)
            for y in range(height)
        ]

    def _picked(self, row: bytes, columns: Sequence[int]) -> bytes:
        """These columns of a row, as red, green and blue."""
        values = [bytes(map(row[start :: self.channels].__getitem__, columns)) for start in range(self.channels)]
        if self.colours:
            known = [*self.colours, *((0, 0, 0),) * (256 - len(self.colours))]
            parts = [values[0].translate(bytes(colour[part] for colour in known[:256])) for part in range(3)]
        else:
            parts = values[:3] if self.channels > 2 else values[:1] * 3
            if self.channels in (2, 4):
                opacity = values[-1]
                parts = [bytes(a * b // 255 for a, b in zip(part, opacity, strict=True)) for part in parts]
        picked = bytearray(3 * len(columns))
        picked[0::3], picked[1::3], picked[2::3] = parts
        return bytes(picked)


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


def encoded(rows: Sequence[bytes]) -> bytes:
    """Rows with three bytes for each pixel as a PNG."""
    header = (len(rows[0]) // 3).to_bytes(4, "big") + len(rows).to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
    content = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = ((b"IHDR", header), (b"IDAT", content), (b"IEND", b""))
    return SIGNATURE + b"".join(
        len(part).to_bytes(4, "big") + name + part + zlib.crc32(name + part).to_bytes(4, "big") for name, part in parts
    )


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
