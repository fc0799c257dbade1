"""A server whose owner decides by a function which tokens are good."""

import pytest

import accord
from accord.http import Access, serving
from tests.http.talking import an_agent

USERS = {"t0ken of ada": "ada", "nameless": ""}


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_a_function_says_who_owns_a_token():
    access = Access(USERS.get)
    assert access.owner(bearer("t0ken of ada")) == "ada"
    assert not access.is_open


@pytest.mark.parametrize("token", ["", " ", "wrong", "nameless"])
def test_a_token_without_an_owner_is_refused(token):
    with pytest.raises(Exception, match="missing or wrong bearer token") as refused:
        Access(USERS.get).owner(bearer(token))
    assert refused.value.status == 401


async def test_a_function_that_fails_refuses_the_request_and_is_logged(caplog):
    def fail(token):
        raise LookupError("no table of users")

    async with serving(an_agent(), access=Access(fail)) as server:
        with pytest.raises(accord.ConnectionClosed, match="500: the token could not be checked"):
            async with accord.connect(server.url, token="any"):
                pass
    assert "no table of users" in caplog.text
