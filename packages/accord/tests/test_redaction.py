"""Secrets do not stand in what is recorded of the wire, and everything else does."""

import json

import pytest

from accord.redaction import mask_urls, masked

SECRET = "s3cret"


def call(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


PAIR = {"name": "API_KEY", "value": SECRET}
HOLD_SECRETS = {
    "the environment of an MCP server": call(
        "session/new", cwd="/p", mcpServers=[{"name": "m", "command": "x", "args": ["-v"], "env": [PAIR]}]
    ),
    "the headers of an MCP server": call(
        "session/load",
        sessionId="s",
        mcpServers=[{"type": "http", "name": "m", "url": "https://e.example", "headers": [PAIR]}],
    ),
    "the environment of a terminal": call("terminal/create", sessionId="s", command="make", env=[PAIR]),
    "variables and headers as objects": call(
        "x", _meta={"terminal-auth": {"env": {"A": SECRET}, "headers": {"B": SECRET}}}
    ),
    "what is no list of pairs": call("x", env=[SECRET, [SECRET], {"key": SECRET}, 5]),
    "a login": call("authenticate", methodId="key", code=SECRET, answer=[SECRET]),
    "the answer to a form": {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"pin": SECRET}}},
    "members that are called a secret": call(
        "x",
        apiKey=SECRET,
        api_key=SECRET,
        Authorization=SECRET,
        deep=[{"accessToken": SECRET}, {"client-secret": SECRET}],
    ),
    "URLs": call(
        "x", link=f"see https://ada:{SECRET}@e.example/a?token={SECRET}&n={SECRET} and wss://{SECRET}@e.example"
    ),
}


def leaves(value):
    if isinstance(value, dict):
        return [leaf for key, member in value.items() for leaf in (key, *leaves(member))]
    return [leaf for member in value for leaf in leaves(member)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("message", HOLD_SECRETS.values(), ids=HOLD_SECRETS)
@pytest.mark.parametrize(
    "written", ["plainly", "with numbers for letters", "with escaped slashes", "with half an emoji"]
)
def test_secrets_are_masked_and_the_rest_stays(message, written):
    text = json.dumps(message)
    if written == "with numbers for letters":
        for word in ("env", "headers", "authenticate", "accept", "apiKey", "token"):
            text = text.replace(f'"{word}"', f'"\\u00{ord(word[0]):x}{word[1:]}"')
    elif written == "with escaped slashes":
        text = text.replace("/", "\\/")
    elif written == "with half an emoji":
        text = text[:-1] + ', "odd": "\\ud83d"}'
    copy = masked(text.encode())
    assert SECRET.encode() not in copy
    kept = [leaf for leaf in leaves(json.loads(text)) if SECRET not in str(leaf)]
    found = leaves(json.loads(copy))
    assert [leaf for leaf in kept if leaf not in found] in ([], [5])


@pytest.mark.parametrize(
    "message",
    [
        call(
            "session/prompt",
            sessionId="s",
            prompt=[{"type": "text", "text": "the env of a token: https://e.example/x"}],
        ),
        call("authenticate", methodId="key"),
        call("session/new", cwd="/p", mcpServers=[{"name": "m", "command": "x", "args": [], "env": []}]),
        {"jsonrpc": "2.0", "id": 1, "result": {"usage": {"token": 5}}},
        {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}},
        "who? me@e.example",
        5,
        [],
    ],
)
def test_a_frame_without_secrets_is_recorded_byte_for_byte(message):
    assert masked(json.dumps(message).encode()) is None
    assert masked(b' {"a" : 1.0e0 }') is None


def test_a_frame_that_cannot_be_read_and_may_hold_secrets_is_not_recorded():
    for frame in (b'{"env":[{"value":"s3cret"}', b'{"env":' + b"[" * 100_000 + b'"s3cret"' + b"]" * 100_000 + b"}"):
        copy = masked(frame)
        assert SECRET.encode() not in copy
        assert str(len(frame))[:3].encode() in copy


def test_a_line_that_is_no_message_loses_the_secrets_of_its_urls():
    assert masked(b"open https://e.example/?code=s3cret now") == b"open https://e.example/?code=*** now"


def test_a_message_is_masked_however_deep_it_is_nested():
    depth = 900
    frame = b'{"a":' * depth + b'{"env":{"A":"s3cret"}}' + b"}" * depth
    assert SECRET.encode() not in masked(frame)


@pytest.mark.parametrize(
    ("text", "shown"),
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
def test_urls_in_texts_lose_their_secrets_and_keep_their_place(text, shown):
    assert mask_urls(text) == shown


def test_many_starts_of_urls_cost_no_more_than_their_length():
    text = "://" * 100_000  # minutes, if each start looked for its query up to the end of the text
    assert mask_urls(text) == text
