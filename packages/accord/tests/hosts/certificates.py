"""Certificates of hosts, made by openssl: a CA, and what it signs."""

import shutil
import subprocess

import pytest

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)


class Authority:
    """A CA with its files in a folder."""

    def __init__(self, folder, name):
        if shutil.which("openssl") is None:
            pytest.skip("this test makes certificates: install openssl")
        self._folder = folder
        self.certificate, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", *CURVE, "-subj", f"/CN={name}", "-out", self.certificate, "-keyout", self._key)

    def sign(self, name, names="IP:127.0.0.1"):
        """A PEM file with a certificate for these names, and its private key."""
        file, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        by = ("-CA", self.certificate, "-CAkey", self._key)
        openssl("req", "-x509", *CURVE, *by, "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}",
                "-addext", "basicConstraints=critical,CA:FALSE", "-out", file, "-keyout", key)  # fmt: skip
        file.write_bytes(file.read_bytes() + key.read_bytes())
        return file
