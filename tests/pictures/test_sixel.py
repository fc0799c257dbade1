"""Sixel, read back by a decoder of this file."""

import re

from accord.pictures.png import decoded, encoded
from accord.pictures.sixel import SixelImage


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
    return [bytes(part for x in range(width) for part in colour(x, y)) for y in range(height)]


def as_tuples(rows):
    return [[tuple(row[place : place + 3]) for place in range(0, len(row), 3)] for row in rows]


def test_an_image_of_few_colours_keeps_them():
    rows = drawing(33, 20, lambda x, y: ((x // 4) * 20, (y // 3) * 30, 7))
    image = SixelImage(rows)
    assert near(pixels(image.slice(0, 20)), as_tuples(rows), 2)
    assert near(pixels(image.slice(7, 20)), as_tuples(rows[7:20]), 2)


def test_an_image_of_many_colours_gets_those_that_are_near():
    rows = drawing(80, 40, lambda x, y: (x * 3, y * 6, (x * y) % 256))
    image = SixelImage(rows)
    assert len(image.colours) <= 256
    assert near(pixels(image.slice(0, 40)), as_tuples(rows), 27)


def test_a_png_that_was_made_here_can_be_read_and_scaled():
    rows = drawing(4, 2, lambda x, y: (x * 60, y * 200, 9))
    bitmap = decoded(encoded(rows))
    assert bitmap.scaled(4, 2) == rows
    assert bitmap.scaled(8, 2)[0] == b"".join(rows[0][it : it + 3] * 2 for it in range(0, 12, 3))
