"""`accord demo` as an editor starts it: a process that speaks the protocol on its standard streams."""

import subprocess
import sys

import pytest

from accord import Handlers, Peer, PeerError, ProcessTransport, v1

ACCORD = [sys.executable, "-c", "import sys; from accord_tools.cli import main; sys.exit(main())"]
INITIALIZE = v1.InitializeRequest(1)


@pytest.fixture
def started():
    return lambda *options: Peer(
        ProcessTransport([*ACCORD, "demo", "--pace", "0", *options]), Handlers(), role="client"
    )


async def test_a_client_starts_it_and_talks_to_it(started, tmp_path):
    async with started() as peer:
        hello = await peer.initialize(INITIALIZE, timeout=30)
        assert hello.agent_info.name == "accord-demo"
        session = await peer.request(v1.NewSessionRequest(str(tmp_path), []), timeout=30)
        answer = await peer.request(v1.PromptRequest.of(session.session_id, "hello"), timeout=30)
        assert answer.stop_reason == "end_turn"


async def test_with_login_nothing_works_before_authentication(started, tmp_path):
    async with started("--login") as peer:
        hello = await peer.initialize(INITIALIZE, timeout=30)
        assert [method.id for method in hello.auth_methods] == ["demo"]
        with pytest.raises(PeerError) as refused:
            await peer.request(v1.NewSessionRequest(str(tmp_path), []), timeout=30)
        assert refused.value.code == -32000
        await peer.request(v1.AuthenticateRequest(v1.AuthMethodId("demo")), timeout=30)
        await peer.request(v1.NewSessionRequest(str(tmp_path), []), timeout=30)
        await peer.request(v1.LogoutRequest(), timeout=30)
        with pytest.raises(PeerError) as refused:
            await peer.request(v1.NewSessionRequest(str(tmp_path), []), timeout=30)
        assert refused.value.code == -32000


def test_it_ends_with_its_input_and_leaves_stdout_to_the_protocol():
    done = subprocess.run([*ACCORD, "demo"], input="", capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
