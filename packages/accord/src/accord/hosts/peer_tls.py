"""TLS between hosts: the certificate of this host, and what it requires of the others'.

A host proves with its certificate that it is reached at the address that the directory names. With a CA of the hosts'
own, each side of a connection requires a certificate of that CA, so that no other program of the network can connect.

Certificates are short-lived, and whoever renews them replaces the files. So the files are looked at with each beat, and
loaded again when they have changed; connections that are opened from then on use them. Files that are just being
written, or do not fit together, change nothing: the certificate that was loaded before stays in use.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from accord.errors import AccordError
from accord.http.server.serve import load_certificate, server_tls

log = logging.getLogger("accord.hosts")


class PeerTls:
    """The contexts for both sides of connections between hosts; raises AccordError if a file cannot be used."""

    def __init__(
        self, certificate: str | Path, key: str | Path | None = None, authority: str | Path | None = None
    ) -> None:
        self._certificate = certificate
        self._key = key
        self._authority = authority
        self.server = server_tls(certificate, key)
        """Accepts connections of other hosts."""
        self.client = ssl.create_default_context() if authority is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        """Opens connections to other hosts; trusts the system's CAs if no other is given."""
        self.client.minimum_version = ssl.TLSVersion.TLSv1_2
        if authority is not None:
            self.server.verify_mode = ssl.CERT_REQUIRED
        self._load(self.client)
        self._trust()
        self._loaded = self._stamps()

    def renew(self) -> None:
        """Load the files again if they have changed."""
        found = self._stamps()
        if found == self._loaded:
            return
        self._loaded = found
        try:
            # Into fresh contexts first: a certificate and a key that do not fit together must not replace others.
            for context in ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.server, self.client:
                self._load(context)
            self._trust()
        except AccordError as error:
            log.warning("%s; the certificate that was loaded before stays in use", error)
        else:
            log.info("the certificate for other hosts was loaded again: %s", self._certificate)

    def _load(self, context: ssl.SSLContext) -> None:
        load_certificate(context, self._certificate, self._key, passphrase=_no_passphrase)

    def _trust(self) -> None:
        if self._authority is None:
            return
        try:
            for context in self.server, self.client:
                context.load_verify_locations(self._authority)
        except OSError as error:
            reason = "not a PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise AccordError(f"cannot use the CA certificate {self._authority}: {reason}") from error

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(Path(file)) for file in (self._certificate, self._key, self._authority) if file is not None]


def _no_passphrase() -> str:
    return ""  # a question at the terminal would stop this host


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
