"""Endpoints and their headers, as values."""

import pytest

from accord import Endpoint
from accord._internal.endpoint import Headers


def test_headers_are_found_in_any_case_and_the_last_of_a_name_counts():
    headers = Headers({"X-Key": "a", "x-key": "b", "Accept": "c"})
    assert (headers["X-KEY"], "X-kEy" in headers, "other" in headers, 5 in headers) == ("b", True, False, False)
    assert dict(headers) == {"x-key": "b", "Accept": "c"}
    assert headers == {"X-Key": "b", "accept": "c"}
    assert headers != {"X-Key": "b"}
    with pytest.raises(KeyError):
        headers["other"]


def test_endpoints_are_equal_if_everything_is():
    one = Endpoint("openai", "https://a.example", {"X": "1"})
    assert one == Endpoint("openai", "https://a.example", {"x": "1"})
    others = [("azure", "https://a.example", {"X": "1"}), ("openai", "https://b.example", {"X": "1"})]
    assert all(one != Endpoint(*other) for other in others)
    assert one != Endpoint("openai", "https://a.example")


def test_a_repr_names_the_host_and_the_headers_and_no_value():
    endpoint = Endpoint("openai", "https://a.example/v1?key=s3cret", {"X-Key": "s3cret"})
    assert repr(endpoint) == "Endpoint('openai', 'https://a.example/v1?key=***', headers=['X-Key'])"
    assert repr(endpoint.headers) == "Headers({'X-Key': '***'})"


def test_a_text_is_shown_without_the_values_of_headers_in_it():
    endpoint = Endpoint(
        "openai", "https://a.example", {"A": "Bearer s3cret", "B": "s3cret-longer", "C": "abc", "D": "abcd"}
    )
    assert endpoint.hidden("s3cret-longer, Bearer s3cret, s3cret, abc, abcd") == "***, ***, ***, abc, ***"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("", "https://a.example"), "api_type must name a kind of API"),
        ((5, "https://a.example"), "api_type must be text, got int"),
        (("openai", 5), "base_url must be text, got int"),
        (("openai", "a.example"), "base_url must be a whole http or https URL, got 'a.example'"),
        (("openai", "ftp://a.example"), "base_url must be a whole http or https URL"),
        (("openai", "https://u:p@a.example"), "base_url must not hold a user name or a password"),
        (("openai", "https://a.example", {"a b": "c"}), "headers must have names that HTTP allows, got 'a b'"),
        (("openai", "https://a.example", {"A": "secret\nB: c"}), "the header 'A' must be one line of text"),
        (("openai", "https://a.example", {"A": 5}), "headers must be texts by their names"),
    ],
)
def test_what_is_no_endpoint_is_refused_by_its_argument_and_shows_no_value(given, problem):
    with pytest.raises((TypeError, ValueError)) as raised:
        Endpoint(*given)
    assert problem in str(raised.value)
    assert "secret" not in str(raised.value)
