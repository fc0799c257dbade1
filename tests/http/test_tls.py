"""TLS: HTTP/2 is negotiated, and an untrusted certificate is refused."""

import shutil
import ssl

import pytest

import accord
from accord.http import connect_transport, serving
from tests.http.talking import an_agent, editor_of

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="this test makes a certificate: install openssl"
)


@pytest.mark.parametrize("scheme", ["https", "wss"])
@pytest.mark.parametrize("http2", [None, False])
async def test_a_prompt_over_tls(certificate, scheme, http2):
    if scheme == "wss" and http2 is not None:
        pytest.skip("a WebSocket is HTTP/1.1")
    options = {} if scheme == "wss" else {"http2": http2}
    async with serving(an_agent(), certificate=certificate[0], key=certificate[1]) as server:
        trusting = ssl.create_default_context(cafile=certificate[0])
        transport = connect_transport(server.url.replace("https", scheme, 1), tls=trusting, **options)
        async with editor_of(transport) as editor:
            session = await editor.open_session()
            await editor.prompt(session, "count 100")
            assert editor.text(session) == "".join(f"{number} " for number in range(100))
            if scheme == "https":
                assert transport._requests.is_multiplexed == (http2 is None)


@pytest.mark.parametrize("scheme", ["https", "wss"])
async def test_an_untrusted_certificate_is_one_clear_error(certificate, scheme):
    async with serving(an_agent(), certificate=certificate[0], key=certificate[1]) as server:
        with pytest.raises(accord.ConnectionClosed, match="certificate"):
            async with editor_of(connect_transport(server.url.replace("https", scheme, 1))):
                pass
