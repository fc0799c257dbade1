"""Images by Pillow: what is decoded, what is refused, and Sixel read back by a decoder of this file."""

import contextlib
import io
import re
import struct
import zlib

import pytest

pytest.importorskip("PIL")

from PIL import Image

from accord_tools.pictures.image import MOST_BYTES, MOST_PIXELS, NotDrawable, SixelImage, decoded, png

ROOM = (600, 320)
RED = (250, 10, 20)


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png_of(depth, kind, rows, *, palette=b"", interlaced=0, size=(8, 8)):
    """A PNG of any kind, whose rows are given without their filters."""
    header = struct.pack(">IIBBBBB", *size, depth, kind, 0, 0, interlaced)
    parts = chunk(b"IHDR", header) + (chunk(b"PLTE", palette) if palette else b"")
    return (
        b"\x89PNG\r\n\x1a\n"
        + parts
        + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + it for it in rows)))
        + chunk(b"IEND", b"")
    )


def saved(kind, **options):
    written = io.BytesIO()
    Image.new("RGB", (64, 64), RED).save(written, kind, **options)
    return written.getvalue()


PALETTE = bytes(RED) * 256
KINDS = {
    **{
        f"a palette of {depth} bits": png_of(depth, 3, [b"\0" * depth] * 8, palette=PALETTE[: 3 << depth])
        for depth in (1, 2, 4, 8)
    },
    "8 bits": png_of(8, 2, [bytes(RED) * 8] * 8),
    "16 bits": png_of(16, 2, [b"".join(bytes((part, 0)) for part in RED) * 8] * 8),
    "interlaced": png_of(
        8, 2, [bytes(RED) * width for width in (1, 1, 2, 2, 2, 4, 4, *[4] * 4, *[8] * 4)], interlaced=1
    ),
    "opaque": png_of(8, 6, [bytes((*RED, 255)) * 8] * 8),
    "JPEG": saved("JPEG", quality=95),
    "progressive JPEG": saved("JPEG", quality=95, progressive=True),
    "WebP": saved("WEBP", lossless=True),
    "GIF": saved("GIF"),
    "animated GIF": saved("GIF", save_all=True, append_images=[Image.new("RGB", (64, 64), (0, 0, 255))] * 3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_usual_kind_of_image_is_decoded(kind):
    image = decoded(KINDS[kind], ROOM)
    middle = image.getpixel((image.width // 2, image.height // 2))
    assert image.mode == "RGB"
    assert all(abs(a - b) <= 4 for a, b in zip(middle, RED, strict=True)), middle


@pytest.mark.parametrize(("depth", "value"), [(1, 255), (2, 255), (4, 255), (8, 255), (16, 255)])
def test_grey_of_every_depth_keeps_its_brightness(depth, value):
    half = png_of(depth, 0, [b"\x80" + b"\0" * (depth - 1)] * 8) if depth > 1 else png_of(1, 0, [b"\xff"] * 8)
    white = png_of(depth, 0, [b"\xff" * depth] * 8)
    assert decoded(white, ROOM).getpixel((3, 3)) == (value,) * 3
    if depth >= 8:
        assert decoded(half, ROOM).getpixel((0, 0))[0] == 128


def test_what_is_transparent_is_dark():
    image = decoded(png_of(8, 6, [bytes((255, 255, 255, 0)) * 8] * 8), ROOM)
    assert image.getpixel((3, 3)) == (0, 0, 0)


def test_a_large_image_is_made_smaller_to_fit():
    written = io.BytesIO()
    Image.new("RGB", (4000, 1000), RED).save(written, "JPEG")
    image = decoded(written.getvalue(), ROOM)
    assert image.size == (600, 150)


def test_a_bomb_is_refused_by_its_header_before_anything_is_decoded(monkeypatch):
    monkeypatch.setattr(Image.Image, "load", lambda *_: pytest.fail("the image was decoded"))
    side = int(MOST_PIXELS**0.5) + 1
    for size in ((side, side), (100_000, 100_000), (2**31 - 1, 2**31 - 1)):
        with pytest.raises(NotDrawable, match="more than 20 million pixels"):
            decoded(png_of(1, 0, [b"\0"], size=size), ROOM)


def test_an_image_of_too_many_bytes_is_refused():
    with pytest.raises(NotDrawable, match="larger than 8 MB"):
        decoded(b"x" * (MOST_BYTES + 1), ROOM)


def test_damaged_bytes_and_other_formats_are_refused_with_one_reason():
    good = [KINDS[it] for it in ("8 bits", "16 bits", "interlaced", "JPEG", "WebP", "GIF")]
    broken = [data[:place] for data in good for place in range(0, len(data) // 2, 7)]
    tiff = io.BytesIO()
    Image.new("RGB", (8, 8)).save(tiff, "TIFF")
    for data in (*broken, b"", b"GIF89a", b"<svg/>", tiff.getvalue()):
        with pytest.raises(NotDrawable, match="damaged, or not PNG, JPEG, WebP or GIF"):
            decoded(data, ROOM)


def test_flipped_bytes_give_an_image_or_a_reason():
    for data in (KINDS["8 bits"], KINDS["JPEG"], KINDS["WebP"], KINDS["GIF"]):
        for place in range(len(data)):
            damaged = bytearray(data)
            damaged[place] ^= 0xFF
            with contextlib.suppress(NotDrawable):
                assert decoded(bytes(damaged), ROOM).mode == "RGB"


def test_an_image_is_written_as_png():
    image = decoded(KINDS["8 bits"], ROOM)
    assert decoded(png(image), ROOM).tobytes() == image.tobytes()


# Sixel


def pixels(text):
    """The rows of a sequence of Sixel, as tuples of red, green and blue; None where nothing is drawn."""
    head = re.match(r'\x1bP0;1q"1;1;(\d+);(\d+)', text)
    width, height = int(head[1]), int(head[2])
    rows = [[None] * width for _ in range(height)]
    colours, colour, x, y = {}, None, 0, 0
    body = text[head.end() : -2]
    assert text.endswith("\x1b\\")
    for found in re.finditer(r"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)(.)|([$-])|([?-~])", body):
        if found[1]:
            colours[found[1]] = tuple(round(int(part) * 255 / 100) for part in found.group(2, 3, 4))
        elif found[5]:
            colour = colours[found[5]]
        elif found[8]:
            x, y = 0, y + 6 * (found[8] == "-")
        else:
            count, sign = (int(found[6]), found[7]) if found[6] else (1, found[9])
            for bit in range(6):
                if (ord(sign) - 63) >> bit & 1:
                    assert rows[y + bit][x : x + count] == [None] * count
                    rows[y + bit][x : x + count] = [colour] * count
            x += count
    return rows


def near(one, two, most):
    return all(
        abs(a - b) <= most
        for row, other in zip(one, two, strict=True)
        for pixel, its in zip(row, other, strict=True)
        for a, b in zip(pixel, its, strict=True)
    )


def drawing(width, height, colour):
    rows = [[colour(x, y) for x in range(width)] for y in range(height)]
    return Image.frombytes("RGB", (width, height), bytes(part for row in rows for pixel in row for part in pixel)), rows


def test_an_image_of_few_colours_keeps_them():
    image, rows = drawing(33, 20, lambda x, y: ((x // 4) * 20, (y // 3) * 30, 7))
    sixel = SixelImage(image)
    assert near(pixels(sixel.slice(0, 20)), rows, 2)
    assert near(pixels(sixel.slice(7, 20)), rows[7:20], 2)


def test_an_image_of_many_colours_gets_those_that_are_near():
    image, rows = drawing(80, 40, lambda x, y: (x * 3, y * 6, (x * y) % 256))
    sixel = SixelImage(image)
    assert near(pixels(sixel.slice(0, 40)), rows, 40)
