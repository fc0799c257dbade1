"""Images of agents as pixels, by Pillow, and pixels as PNG and Sixel.

An agent chooses the bytes. So only four formats are opened, an image's size is read from its header before anything is
decoded, and whatever Pillow raises for damaged bytes becomes one `NotDrawable`. Decoding takes up to a second: callers
do it in a thread.
"""

from __future__ import annotations

import io
import re
from functools import lru_cache

from PIL import Image, ImageOps

from accord_tools.pictures.terminal_graphics import MOST_BYTES

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
MOST_PIXELS = 20_000_000
COLOURS = 256
"""The number of colours of an image in Sixel."""

_REPEATED = re.compile(rb"(.)\1{3,}", re.DOTALL)
_TO_SIXEL = bytes((value + 63) & 255 for value in range(256))


class NotDrawable(Exception):
    """An image cannot be drawn; the text has the reason."""


def decoded(data: bytes, most: tuple[int, int]) -> Image.Image:
    """Return the first picture of an image as RGB, scaled down to this many pixels. Transparent parts are dark."""
    if len(data) > MOST_BYTES:
        raise NotDrawable(f"larger than {MOST_BYTES // 1024**2} MB")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise Image.DecompressionBombError  # noqa: TRY301
            image.draft("RGB", most)  # a JPEG is decoded at a fraction of its size
            return _rgb(ImageOps.exif_transpose(_smaller(image, most)))
    except Image.DecompressionBombError:
        raise NotDrawable(f"more than {MOST_PIXELS // 1_000_000} million pixels") from None
    except Exception:  # Pillow raises a dozen kinds for damaged bytes, such as SyntaxError
        raise NotDrawable("damaged, or not PNG, JPEG, WebP or GIF") from None


def _smaller(image: Image.Image, most: tuple[int, int]) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits of grey, which Pillow would cut off instead of dividing
        grey = image.convert("I").point(lambda value: value * (1 / 256))  # pyright: ignore[reportUnknownMemberType]
        image = grey.convert("L")
    elif image.mode not in ("RGB", "L"):
        image = image.convert("RGBA")  # colours of a palette cannot be mixed
    image.thumbnail((max(most), max(most)) if image.getexif().get(_ORIENTATION, 1) > 4 else most, reducing_gap=2.0)
    return image


_ORIENTATION = 0x0112


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image.convert("RGB")
    dark = Image.new("RGB", image.size)
    dark.paste(image, mask=image.getchannel("A"))
    return dark


def resized(image: Image.Image, width: int, height: int) -> Image.Image:
    """The image in another size."""
    return image.resize((width, height))  # pyright: ignore[reportUnknownMemberType]


def png(image: Image.Image) -> bytes:
    """The image as a PNG."""
    written = io.BytesIO()
    image.save(written, "PNG")
    return written.getvalue()


class SixelImage:
    """An image whose rows of pixels can be written as Sixel a few at a time."""

    def __init__(self, image: Image.Image) -> None:
        numbers = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)
        pixels, self._width = numbers.tobytes(), image.width
        self._rows = [pixels[place : place + self._width] for place in range(0, len(pixels), self._width)]
        self._palette = numbers.getpalette() or []

    def slice(self, start: int, end: int) -> str:
        """Return some of the rows as one sequence, drawn at the cursor. Nothing around the pixels is touched."""
        rows = self._rows[start:end]
        palette = "".join(f"#{number};2;{self._colour(number)}" for number in sorted(set(b"".join(rows))))
        bands = [_band(rows[place : place + 6], self._width) for place in range(0, len(rows), 6)]
        return f'\x1bP0;1q"1;1;{self._width};{len(rows)}{palette}{"-".join(bands)}\x1b\\'

    def _colour(self, number: int) -> str:
        return ";".join(str(round(part * 100 / 255)) for part in self._palette[3 * number : 3 * number + 3])


def _band(rows: list[bytes], width: int) -> str:
    """Return six rows: for each of their colours the columns that have it. Large integers hold a bit for each pixel."""
    parts: list[bytes] = []
    for colour in sorted(set(b"".join(rows))):
        bits = 0
        for number, row in enumerate(rows):
            bits |= int.from_bytes(row.translate(_bit(colour, number)), "big")
        line = bits.to_bytes(width, "big").translate(_TO_SIXEL).rstrip(b"?")
        parts.append(b"#%d" % colour + _REPEATED.sub(lambda found: b"!%d%b" % (len(found[0]), found[1]), line))
    return b"$".join(parts).decode("ascii")


@lru_cache(maxsize=2048)
def _bit(colour: int, row: int) -> bytes:
    """Return a table that maps the number of a colour to the bit of a row, every other number to zero."""
    return bytes(1 << row if number == colour else 0 for number in range(256))
