"""A link is shown so that its user sees where it leads, whatever letters it is written in."""
# ruff: noqa: RUF001

import pytest

import accord
from accord.services.url_to_visit import UrlToVisit


def punycode(label):
    return "xn--" + label.encode("punycode").decode()


@pytest.mark.parametrize(
    "label", ["münchen", "straße", "пример", "παράδειγμα", "例え", "テスト", "한국", "łódź", "bücher-24"]
)
def test_a_domain_of_one_alphabet_is_shown_as_it_reads(label):
    for host in (label, punycode(label)):
        [warning] = UrlToVisit.of(f"https://{host}.example/").warnings
        assert f"it reads “{label}.example”" in warning
    assert UrlToVisit.of(f"https://{label}.example/a").marked == ("https://", f"{label}.example", "/a")


@pytest.mark.parametrize(
    "label",
    [
        "аррӏе",  # all Cyrillic
        "pаypal",  # one Cyrillic letter
        "ρaypal",
        "ɡoogle",
        "paypaı",
        "exampleノlogin",
        "مثال",
    ],
)
def test_a_domain_that_may_be_taken_for_another_is_shown_in_ascii(label):
    for host in (label, punycode(label)):
        link = UrlToVisit.of(f"https://{host}.example/a")
        assert link.domain == f"{punycode(label)}.example"
        assert link.marked == ("https://", link.domain, "/a")
        [warning] = link.warnings
        assert "may be taken for those of another domain" in warning
        assert warning.isascii()


@pytest.mark.parametrize(
    "label",
    ["\x9b31mred", "a\u202egpj", "a\u2028b", "a\u200db", "\x85x", "a\ue000", "\u0430\u0301", "Ünder", "①"],
)
def test_a_domain_that_hides_characters_in_punycode_is_shown_in_ascii(label):
    link = UrlToVisit.of(f"https://{punycode(label)}.example/a")
    assert "".join((*link.marked, link.domain, *link.warnings)).isascii()
    assert len(link.warnings) == 1


@pytest.mark.parametrize(
    ("url", "marked"),
    [
        ("https://evil.example/a⁄b?q=ü", ("https://", "evil.example", "/a%E2%81%84b?q=%C3%BC")),
        ("https://gооd.example@evil.example/", ("https://g%D0%BE%D0%BEd.example@", "evil.example", "/")),
        ("https://İ.example@evil.example:443/x", ("https://%C4%B0.example@", "evil.example", ":443/x")),
        ("https://me@[::1]:80/x", ("https://me@[", "::1", "]:80/x")),
        ("HTTPS://EVIL.example?good.example", ("HTTPS://", "EVIL.example", "?good.example")),
        ("https://①②.example/", ("https://", "12.example", "/")),
    ],
)
def test_the_rest_of_a_link_is_shown_as_it_is_sent(url, marked):
    assert UrlToVisit.of(url).marked == marked


LONG_LABEL, LONG_DOMAIN = "a" * 64 + ".example", "a." * 130 + "example"


@pytest.mark.parametrize("domain", ["good.example／.evil.example", LONG_LABEL, LONG_DOMAIN])
def test_a_domain_that_cannot_be_one_is_refused(domain):
    with pytest.raises(accord.RequestError, match=r"invalid domain|malformed URL"):
        UrlToVisit.of(f"https://{domain}/")


def test_a_url_past_its_bound_is_refused_and_says_what_is_allowed():
    assert UrlToVisit.of("https://example.com/" + "x" * (8_192 - 20)).warnings == ()
    with pytest.raises(accord.RequestError, match="8,193 characters, at most 8,192") as caught:
        UrlToVisit.of("https://example.com/" + "x" * (8_193 - 20))
    assert len(str(caught.value.data)) < 200
