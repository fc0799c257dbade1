"""Hosts speak TLS with each other: whom they accept, what they say of wrong certificates, and how files are renewed."""

import logging
import shutil
import ssl

import pytest

import accord
from accord.hosts.peers import PeerTls
from accord.http.client.client_socket import Broken
from accord.http.client.connection_pool import ConnectionPool
from tests.hosts.certificates import Authority
from tests.hosts.hosting import HostProcesses, editor_on
from tests.http.talking import an_agent

COUNT = "".join(f"{number} " for number in range(300))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), "ca")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


def tls_of(certificate, ca):
    return {"tls": {"peer_certificate": str(certificate), "peer_ca": str(ca.certificate)}}


async def test_a_turn_passes_through_hosts_that_speak_tls_with_each_other(directory, authority):
    encrypted = tls_of(authority.sign("host"), authority)
    async with HostProcesses({**directory, **encrypted}, 2) as hosts:
        async with editor_on(hosts.url) as editor:
            session = await editor.open_session()
            await editor.prompt(session, "count 300")
            assert editor.text(session) == COUNT
        assert all(hosts.balancer.taken.values())
        front = await hosts.add(weight=0)
        await hosts.know_each_other()
        async with editor_on(front.url, "websocket") as editor:
            session = await editor.open_session()
            await editor.prompt(session, "count 300")
            assert editor.text(session) == COUNT


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("another CA", "certificate verify failed"),
        ("another address", "not valid for '127.0.0.1'"),
        ("no TLS", "it does not speak TLS"),
    ],
)
async def test_a_host_with_a_wrong_certificate_is_not_used_and_the_log_says_why(
    tmp_path, authority, stranger, wrong, why
):
    directory = {"directory": str(tmp_path / "hosts.sqlite3"), "store": str(tmp_path / "store.sqlite3"), "lease": 1.0}
    right = tls_of(authority.sign("right"), authority)
    other = {
        "another CA": lambda: tls_of(stranger.sign("other"), authority),
        "another address": lambda: tls_of(authority.sign("elsewhere", "IP:10.0.3.7"), authority),
        "no TLS": dict,
    }[wrong]()
    async with HostProcesses({**directory, **right}, 1) as hosts:
        first = hosts.all[0]
        second = await hosts.add(**{"tls": None, **other})
        await first.said(f"host {second.id}")
        assert why in first.last_said
        await hosts.answered(first, second, 503, "does not answer")
        async with editor_on(first.url) as editor:
            assert await hosts.host_of(editor) is first
        if wrong == "another CA":
            await second.said(f"host {first.id}")
            assert "it may not accept the certificate of this host" in second.last_said


async def test_the_peer_port_refuses_programs_without_a_certificate_of_the_ca(tmp_path, authority, stranger):
    certificate = authority.sign("refusing")
    hosts = accord.Hosts(
        tmp_path / "hosts.sqlite3", peer_certificate=certificate, peer_ca=authority.certificate, name="refusing"
    )
    async with accord.http.serving(an_agent(), hosts=hosts) as server:
        [row] = server.app.cluster.membership.view.hosts.values()

        async def health(*own):
            tls = ssl.create_default_context(cafile=authority.certificate)
            if own:
                tls.load_cert_chain(*own)
            asking = ConnectionPool(f"https://{row.address}/healthz", tls=tls, http2=False)
            try:
                return (await (await asking.request("GET", [])).body(1024)).decode()
            finally:
                await asking.close()

        assert await health(certificate) == "ok"
        with pytest.raises(Broken):
            await health()
        with pytest.raises(Broken):
            await health(stranger.sign("intruder"))
        assert await health(certificate) == "ok"


def shown_by(one, other):
    """The certificate that the first shows in a handshake with the second, as bytes."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = one.server.wrap_bio(to_server, to_client, server_side=True)
    client = other.client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    waiting = [client, server]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    return client.getpeercert(binary_form=True)


def test_files_that_were_replaced_are_loaded_again(tmp_path, authority, caplog):
    caplog.set_level(logging.INFO, "accord.hosts")
    file = tmp_path / "host.pem"
    shutil.copy(authority.sign("old"), file)
    mine = PeerTls(file, authority=authority.certificate)
    theirs = PeerTls(authority.sign("their"), authority=authority.certificate)
    before = shown_by(mine, theirs)
    mine.renew()
    assert shown_by(mine, theirs) == before

    shutil.copy(authority.sign("new"), file)
    mine.renew()
    assert shown_by(mine, theirs) != before
    assert "was loaded again" in caplog.text


def test_files_that_cannot_be_used_change_nothing(tmp_path, authority, caplog):
    file, key = tmp_path / "host.pem", tmp_path / "host.key"
    shutil.copy(authority.sign("one"), file)
    shutil.copy(file, key)
    mine = PeerTls(file, key, authority.certificate)
    before = shown_by(mine, mine)

    shutil.copy(authority.sign("two"), key)  # the certificate is not written yet
    mine.renew()
    mine.renew()
    assert shown_by(mine, mine) == before
    assert caplog.text.count("the certificate that was loaded before stays in use") == 1

    shutil.copy(key, file)
    mine.renew()
    assert shown_by(mine, mine) != before


async def test_settings_that_cannot_be_used_are_refused_in_words(tmp_path, authority):
    directory, none = tmp_path / "hosts.sqlite3", tmp_path / "none.pem"
    with pytest.raises(ValueError, match=r"Hosts\(peer_ca=...\) requires peer_certificate"):
        accord.Hosts(directory, peer_ca=none)

    async def refusal(**files):
        with pytest.raises(accord.AccordError) as refused:
            async with accord.http.serving(an_agent(), hosts=accord.Hosts(directory, **files)):
                pass
        return str(refused.value)

    file = authority.sign("host")
    bare = tmp_path / "bare.pem"
    bare.write_text(file.read_text().partition("-----BEGIN PRIVATE KEY")[0])
    assert await refusal(peer_certificate=none) == f"cannot use the certificate {none}: No such file or directory"
    assert "not a PEM certificate with a matching private key" in await refusal(peer_certificate=bare)
    empty = tmp_path / "empty.pem"
    empty.touch()
    told = await refusal(peer_certificate=file, peer_ca=empty)
    assert told == f"cannot use the CA certificate {empty}: not a PEM certificate"
