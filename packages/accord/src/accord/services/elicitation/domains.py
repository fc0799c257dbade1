"""Internationalised domains: which may be displayed in their own letters, and which only in ASCII. Pure.

Letters of different alphabets may look the same: the Cyrillic U+0430 and the Latin a, for one. A label is displayed in
its own letters only if they belong to one alphabet, are plain lower-case letters, and at least one of them does not
look like a Latin letter. Browsers have longer tables. In doubtful cases the ASCII form is displayed.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import unicodedata

LONGEST_LABEL, LONGEST_DOMAIN = 63, 253
"""Characters of a label and of a domain, in ASCII (RFC 1035, 2.3.4)."""

_ALPHABETS = (
    frozenset({"LATIN"}),
    frozenset({"CYRILLIC"}),
    frozenset({"GREEK"}),
    frozenset({"CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"HANGUL"}),
)
_LATIN = frozenset("abcdefghijklmnopqrstuvwxyzßæœøðþł")
_LOOK_LATIN = frozenset("асԁеһіјӏорԛѕԝхуъьбгзптмнквѵѡғүұѐёїўќѓ" + "αοινρυκτχωγηςσεβάόίύώήέ" + "一ニハ工口力夕卜〇ー")
_LOOK_LIKE_MARKS = frozenset("ノソン丶〳〵゠・ゝヽ")
_HYPHEN_AND_DIGITS = frozenset("-0123456789")


def in_ascii(host: str) -> str:
    """The host in ASCII, as DNS knows it; raises UnicodeError if it is invalid.

    >>> in_ascii("München.example")
    'xn--mnchen-3ya.example'
    """
    labels = unicodedata.normalize("NFKC", host[: LONGEST_DOMAIN + 1]).lower().split(".")
    domain = ".".join(_label_in_ascii(label) for label in labels)
    if len(host) > LONGEST_DOMAIN or len(domain) > LONGEST_DOMAIN:
        raise UnicodeError(f"domain is too long: at most {LONGEST_DOMAIN} characters are allowed")
    if any(len(label) > LONGEST_LABEL for label in domain.split(".")):
        raise UnicodeError(f"part of a domain is too long: at most {LONGEST_LABEL} characters are allowed")
    return domain


def readable(domain: str) -> str | None:
    """The domain in its own letters; None if one of its labels could be mistaken for another.

    >>> readable("xn--mnchen-3ya.example"), readable("xn--pple-43d.com")
    ('münchen.example', None)
    """
    labels = [_own_letters(label) for label in domain.split(".")]
    return None if None in labels else ".".join(label or "" for label in labels)


def _label_in_ascii(label: str) -> str:
    return label if label.isascii() else "xn--" + label.encode("punycode").decode()


def _own_letters(label: str) -> str | None:
    if not label.startswith("xn--"):
        return label
    try:
        letters = label[4:].encode().decode("punycode")
    except UnicodeError:
        return None
    return letters if _label_in_ascii(letters) == label and _is_unmistakable(letters) else None


def _is_unmistakable(label: str) -> bool:
    letters = set(label) - _HYPHEN_AND_DIGITS
    if unicodedata.normalize("NFKC", label) != label or letters & _LOOK_LIKE_MARKS:
        return False
    if not all(unicodedata.category(letter) in ("Ll", "Lo") for letter in letters):
        return False
    alphabets = {unicodedata.name(letter, "").split(" ")[0] for letter in letters}
    if not any(alphabets <= allowed for allowed in _ALPHABETS):
        return False
    if alphabets == {"LATIN"}:
        return all(unicodedata.normalize("NFD", letter)[0] in _LATIN for letter in letters)
    return not letters <= _LOOK_LATIN
