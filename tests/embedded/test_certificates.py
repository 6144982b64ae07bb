"""Certificates of one machine: made, reused, renewed, and which service shows which."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from reverie.domain.core.errors import Misconfigured
from reverie.embedded.home import open_home
from reverie.embedded.tls import certificates
from reverie.embedded.tls.setup import prepare_tls
from reverie.runtime.settings.settings import Settings


def test_a_certificate_is_reused_and_renewed_before_it_ends_or_when_names_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = certificates.collect_host_names("127.0.0.1", "memory.example, ")
    files = certificates.ensure_certificate(tmp_path / "tls", names)
    kept = [path.read_bytes() for path in (files.ca, files.cert, files.key)]
    modes = {path.name: path.stat().st_mode & 0o777 for path in files.cert.parent.iterdir()}
    assert modes == {"ca.pem": 0o644, "cert.pem": 0o644, "key.pem": 0o600, "ca-key.pem": 0o600}
    ssl.create_default_context(cafile=str(files.ca))
    certificates.ensure_certificate(tmp_path / "tls", names)
    assert [path.read_bytes() for path in (files.ca, files.cert, files.key)] == kept
    # Another name, and an end that is near: the certificate alone is made anew.
    certificates.ensure_certificate(tmp_path / "tls", [*names, "other.example"])
    ca, cert, key = (path.read_bytes() for path in (files.ca, files.cert, files.key))
    assert (ca, key) == (kept[0], kept[2])
    assert cert != kept[1]
    monkeypatch.setattr(certificates, "RENEWAL_DAYS", certificates.CERTIFICATE_DAYS + 1)
    certificates.ensure_certificate(tmp_path / "tls", names)
    assert files.cert.read_bytes() != cert
    assert files.ca.read_bytes() == ca
    # An authority that ends takes its certificates with it.
    monkeypatch.setattr(certificates, "CA_RENEWAL_DAYS", certificates.CA_DAYS + 1)
    certificates.ensure_certificate(tmp_path / "tls", names)
    assert files.ca.read_bytes() != ca


def test_the_setting_files_are_those_of_the_gateway_and_other_services_show_their_own(
    tmp_path: Path,
) -> None:
    place = open_home(tmp_path)
    assert prepare_tls(Settings(home=tmp_path), place) is None
    signed = Settings(home=tmp_path, tls_source="self-signed")
    own = prepare_tls(signed, place)
    assert own is not None
    for service in ("recall", "dream"):
        assert own.settings_for(service, signed).tls_cert == own.own_files.cert
    given = Settings(home=tmp_path, tls_cert=Path("/c"), tls_key=Path("/k"), ca_file=Path("/a"))
    files = prepare_tls(given, place)
    assert files is not None
    gateway, dream = (files.settings_for(service, given) for service in ("recall", "dream"))
    assert (gateway.tls_cert, gateway.tls_key) == (Path("/c"), Path("/k"))
    assert (gateway.ca_file, dream.ca_file) == (own.own_files.ca, Path("/a"))
    assert dream.tls_cert == own.own_files.cert
    for half in ({"tls_cert": Path("/c")}, {"tls_key": Path("/k")}):
        with pytest.raises(Misconfigured, match="beside it"):
            prepare_tls(Settings.model_validate({"home": tmp_path, **half}), place)
