"""Certificates of this machine's own, for TLS without an authority: for trial, and among services.

An authority is made once and kept in the home folder; it signs one certificate for all services,
which is made anew before it ends. Its key stays, so that files never belong to two of them.
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

from reverie.contracts.trust import OWN_CA
from reverie.embedded.home import write_private

CA_DAYS: Final = 3650
DAYS: Final = 90
LEAST_DAYS: Final = 30
"""Days before its end in which a certificate is made anew; of an authority a year."""
CA_LEAST_DAYS: Final = 365
_EARLIER: Final = timedelta(hours=1)
"""For clocks that go slow."""


@dataclass(frozen=True)
class Files:
    """Where the authority, the certificate and its key lie."""

    ca: Path
    cert: Path
    key: Path


def files_in(folder: Path) -> Files:
    """The files of a folder, there or not."""
    return Files(folder / Path(OWN_CA).name, folder / "cert.pem", folder / "key.pem")


def names_of(host: str, allowed_hosts: str = "") -> list[str]:
    """The names and addresses under which this machine's services are reached."""
    wide = host in {"", "0.0.0.0", "::"}  # noqa: S104
    own = [socket.gethostname(), *_addresses()] if wide else [host]
    named = [name.strip().lower() for name in allowed_hosts.split(",")]
    return list(dict.fromkeys(n for n in ("localhost", "127.0.0.1", "::1", *own, *named) if n))


def ensure(folder: Path, names: Iterable[str]) -> Files:
    """A certificate for these names stands in the folder, and holds for some time to come.

    Whatever is missing, ends soon or names others is made anew; keys are readable by their owner
    alone. Calling it again is how it is renewed.
    """
    files, wanted = files_in(folder), list(names)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    ca_key = _key(folder / "ca-key.pem")
    ca = _read(files.ca)
    if ca is None or not _signs(ca, ca_key) or _ends_within(ca, CA_LEAST_DAYS):
        ca = _authority(ca_key)
        _write_open(files.ca, ca)
    key = _key(files.key)
    cert = _read(files.cert)
    if cert is None or not _stands(cert, ca, key, wanted):
        _write_open(files.cert, _signed(key, wanted, ca, ca_key), ca)
    return files


def _stands(
    cert: x509.Certificate,
    ca: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    names: list[str],
) -> bool:
    try:
        cert.verify_directly_issued_by(ca)
    except Exception:
        return False
    own = cert.public_key() == key.public_key()
    return own and not _ends_within(cert, LEAST_DAYS) and set(names) <= _named(cert)


def _named(cert: x509.Certificate) -> set[str]:
    found = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = found.get_values_for_type(x509.IPAddress)
    return {*found.get_values_for_type(x509.DNSName), *map(str, addresses)}


def _ends_within(cert: x509.Certificate, days: int) -> bool:
    return cert.not_valid_after_utc - datetime.now(UTC) < timedelta(days=days)


def _signs(ca: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    return ca.public_key() == key.public_key()


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    # Two of one name and other keys would be taken for each other.
    who = _name(f"Reverie on {socket.gethostname()[:30]} {x509.random_serial_number() % 10**8:08}")
    made = _begun(who, who, key, CA_DAYS)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    made = made.add_extension(_usage(signs=True), critical=True)
    return made.sign(key, hashes.SHA256())


def _signed(
    key: ec.EllipticCurvePrivateKey,
    names: list[str],
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    made = _begun(_name("Reverie"), ca.subject, key, DAYS)
    made = made.add_extension(x509.SubjectAlternativeName([_general(n) for n in names]), False)
    made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    made = made.add_extension(_usage(signs=False), critical=True)
    made = made.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
    of_ca = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return made.add_extension(of_ca, False).sign(ca_key, hashes.SHA256())


def _begun(
    who: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(issuer, who, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - _EARLIER).not_valid_after(now + timedelta(days=days))
    return made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _addresses() -> list[str]:
    try:
        found = socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return []
    return sorted({str(one[4][0]).partition("%")[0] for one in found})


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The key in a file, made where there is none that can be read."""
    try:
        found = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError):
        found = None
    if isinstance(found, ec.EllipticCurvePrivateKey):
        return found
    made = ec.generate_private_key(ec.SECP256R1())
    how = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    write_private(path, made.private_bytes(serialization.Encoding.PEM, *how).decode())
    return made


def _read(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        return None


def _write_open(path: Path, *certs: x509.Certificate) -> None:
    """Replaces a file that everybody may read."""
    pem = b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certs)
    write_private(path, pem.decode())
    os.chmod(path, 0o644)
