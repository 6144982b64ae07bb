"""Creates and renews this machine's own certificate authority and its TLS certificate.

The authority is created once and kept in the home folder. It signs one certificate for all
services, which is renewed before it expires. Keys are kept across renewals.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reverie.contracts.tls import LOCAL_CA_PATH
from reverie.embedded.home import write_private_file

CA_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 90
RENEWAL_DAYS: Final = 30
"""Days before expiry in which a certificate is renewed; for an authority a year."""
CA_RENEWAL_DAYS: Final = 365
_CLOCK_SKEW: Final = timedelta(hours=1)
"""For clocks that go slow."""


@dataclass(frozen=True)
class CertificateFiles:
    """Paths of the authority, the certificate and its key."""

    ca: Path
    cert: Path
    key: Path


def locate_files(folder: Path) -> CertificateFiles:
    """The files of a folder, there or not."""
    return CertificateFiles(
        folder / Path(LOCAL_CA_PATH).name, folder / "cert.pem", folder / "key.pem"
    )


def collect_host_names(host: str, allowed_hosts: str = "") -> list[str]:
    """The names and addresses under which this machine's services are reached."""
    is_wildcard = host in {"", "0.0.0.0", "::"}  # noqa: S104
    own_names = [socket.gethostname(), *_list_local_addresses()] if is_wildcard else [host]
    allowed_names = [name.strip().lower() for name in allowed_hosts.split(",")]
    return list(
        dict.fromkeys(n for n in ("localhost", "127.0.0.1", "::1", *own_names, *allowed_names) if n)
    )


def ensure_certificate(folder: Path, names: Iterable[str]) -> CertificateFiles:
    """Ensures that the folder has a valid certificate for these names.

    Creates a new one if it is missing, expires soon or has other names. Keys are readable by their
    owner alone. Call it again to renew.
    """
    files, host_names = locate_files(folder), list(names)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    ca_key = _load_or_create_key(folder / "ca-key.pem")
    ca = _read_certificate(files.ca)
    if ca is None or ca.public_key() != ca_key.public_key() or _expires_within(ca, CA_RENEWAL_DAYS):
        ca = _create_authority(ca_key)
        _write_public_file(files.ca, ca)
    key = _load_or_create_key(files.key)
    cert = _read_certificate(files.cert)
    if cert is None or not _is_valid(cert, ca, key, host_names):
        _write_public_file(files.cert, _create_certificate(key, host_names, ca, ca_key), ca)
    return files


def _is_valid(
    cert: x509.Certificate,
    ca: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    names: list[str],
) -> bool:
    try:
        cert.verify_directly_issued_by(ca)
    except Exception:
        return False
    matches = cert.public_key() == key.public_key()
    return (
        matches
        and not _expires_within(cert, RENEWAL_DAYS)
        and set(names) <= _read_alternative_names(cert)
    )


def _read_alternative_names(cert: x509.Certificate) -> set[str]:
    extension = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = extension.get_values_for_type(x509.IPAddress)
    return {*extension.get_values_for_type(x509.DNSName), *map(str, addresses)}


def _expires_within(cert: x509.Certificate, days: int) -> bool:
    return cert.not_valid_after_utc - datetime.now(UTC) < timedelta(days=days)


def _create_authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    # Two of one name and other keys would be taken for each other.
    subject = _common_name(
        f"Reverie on {socket.gethostname()[:30]} {x509.random_serial_number() % 10**8:08}"
    )
    builder = _start_builder(subject, subject, key, CA_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(is_authority=True), critical=True)
    return builder.sign(key, hashes.SHA256())


def _create_certificate(
    key: ec.EllipticCurvePrivateKey,
    names: list[str],
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    builder = _start_builder(_common_name("Reverie"), ca.subject, key, CERTIFICATE_DAYS)
    builder = builder.add_extension(
        x509.SubjectAlternativeName([_general_name(n) for n in names]), False
    )
    builder = builder.add_extension(
        x509.BasicConstraints(ca=False, path_length=None), critical=True
    )
    builder = builder.add_extension(_key_usage(is_authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
    authority_key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return builder.add_extension(authority_key_id, False).sign(ca_key, hashes.SHA256())


def _start_builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        issuer, subject, key.public_key(), x509.random_serial_number()
    )
    builder = builder.not_valid_before(now - _CLOCK_SKEW).not_valid_after(
        now + timedelta(days=days)
    )
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)


def _key_usage(is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _list_local_addresses() -> list[str]:
    try:
        infos = socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return []
    return sorted({str(info[4][0]).partition("%")[0] for info in infos})


def _load_or_create_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Returns the key in a file; creates it if there is no readable one."""
    try:
        existing = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError):
        existing = None
    if isinstance(existing, ec.EllipticCurvePrivateKey):
        return existing
    created = ec.generate_private_key(ec.SECP256R1())
    options = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    write_private_file(path, created.private_bytes(serialization.Encoding.PEM, *options).decode())
    return created


def _read_certificate(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        return None


def _write_public_file(path: Path, *certs: x509.Certificate) -> None:
    """Replaces a file that everybody may read."""
    pem = b"".join(cert.public_bytes(serialization.Encoding.PEM) for cert in certs)
    write_private_file(path, pem.decode())
    os.chmod(path, 0o644)
