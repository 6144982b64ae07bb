"""HTTPS by files, taken up anew when they are renewed."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from reverie.domain.errors import Misconfigured
from reverie.runtime.service import running
from reverie.runtime.settings import Settings
from reverie.runtime.tls import certificate_of
from tests.integration.runtime_sample import KEY, Sample


def _write(cert: Path, key: Path, name: str) -> None:
    """A certificate for this machine that signs itself."""
    secret = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder().subject_name(who).issuer_name(who)
        .public_key(secret.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(alternative, False).sign(secret, hashes.SHA256())
    )  # fmt: skip
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ))  # fmt: skip


async def test_https_is_answered_with_the_certificate_and_http_is_not(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    _write(cert, key, "first")
    settings = Settings(tls_cert=cert, tls_key=key)
    trusted = ssl.create_default_context(cafile=str(cert))
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        running(Sample().service(), settings) as url,
        aiohttp.ClientSession(headers=headers) as http,
    ):
        assert url.startswith("https://127.0.0.1:")
        async with http.get(f"{url}/v1/notes", ssl=trusted) as answer:
            assert answer.status == 200
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get(f"{url}/v1/notes", ssl=ssl.create_default_context())
        with pytest.raises(aiohttp.ClientError):
            await http.get(f"http{url[5:]}/v1/notes")


def test_renewed_files_are_taken_up_and_broken_ones_are_not(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    _write(cert, key, "first")
    held = certificate_of(cert, key)
    assert held is not None
    assert not held.renew()
    _write(cert, key, "second")
    assert held.renew()
    cert.write_text("no certificate")
    assert not held.renew()
    for given in ((cert, None), (None, key), (tmp_path / "none.pem", key)):
        with pytest.raises(Misconfigured, match="tls_cert"):
            certificate_of(*given)
