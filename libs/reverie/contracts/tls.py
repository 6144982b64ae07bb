"""TLS contexts of clients: the system's certificate authorities plus an optional own CA file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.domain.core.errors import Misconfigured

if TYPE_CHECKING:
    # Imported only to create a context, because the import is slow.
    import ssl

LOCAL_CA_PATH = "tls/ca.pem"
"""The path in a home folder of the certificate authority that `reverie up` creates."""


def find_ca_file(ca: Path | str | None, home: Path) -> Path | None:
    """The configured file, otherwise the one in the home folder, if any."""
    local_ca = home / LOCAL_CA_PATH
    return Path(ca) if ca else local_ca if local_ca.is_file() else None


def create_tls_context(ca: Path | str | None) -> ssl.SSLContext:
    """A context that trusts the system's authorities and those of a PEM file.

    Raises `Misconfigured` if the file is not readable PEM.
    """
    if ca is None:
        return _load_tls_context(None, 0)
    try:
        return _load_tls_context(str(ca), Path(ca).stat().st_mtime_ns)
    except OSError as error:
        raise Misconfigured("ca", f"cannot be used: {error.strerror or error}") from None


@lru_cache(maxsize=8)
def _load_tls_context(ca: str | None, _: int) -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context()
    if ca is not None:
        context.load_verify_locations(ca)
    return context
