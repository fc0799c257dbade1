"""Secrets do not stand in what people read."""

import pytest

from accord.masking import mask_urls


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://example.com/acp", "https://example.com/acp"),
        (
            "cannot reach https://ada:s3cret@example.com/acp: refused",
            "cannot reach https://***@example.com/acp: refused",
        ),
        ("https://ada:p@ss@example.com/", "https://***@example.com/"),
        ("wss://token@example.com:81/acp", "wss://***@example.com:81/acp"),
        ("https://example.com/acp?token=abc&x=y;z=1#top", "https://example.com/acp?token=***&x=***;z=***#top"),
        ("https://example.com/acp?abc", "https://example.com/acp?***"),
        ("'https://example.com/?k=v' or https://b@c.d/?e=f", "'https://example.com/?k=***' or https://***@c.d/?e=***"),
        ("mail ada@example.com, why? because=1", "mail ada@example.com, why? because=1"),
    ],
)
def test_urls_in_texts_lose_their_secrets_and_keep_their_place(text, masked):
    assert mask_urls(text) == masked


def test_many_starts_of_urls_cost_no_more_than_their_length():
    text = "://" * 100_000  # minutes, if each start looked for its query up to the end of the text
    assert mask_urls(text) == text
