"""TLS contexts of clients: the system's certificate authorities plus an optional own CA file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.domain.core.errors import Misconfigured

if TYPE_CHECKING:
    # Loaded by whoever makes a context alone: it takes longer than all else here.
    import ssl

LOCAL_CA_PATH = "tls/ca.pem"
"""Where in a home folder the authority lies that `reverie up` made for itself."""


def find_ca_file(ca: Path | str | None, home: Path) -> Path | None:
    """The file that is set, else the one that the home folder holds, if any."""
    local_ca = home / LOCAL_CA_PATH
    return Path(ca) if ca else local_ca if local_ca.is_file() else None


def create_tls_context(ca: Path | str | None) -> ssl.SSLContext:
    """A context that believes the system's authorities and those of a PEM file.

    Raises `Misconfigured` where that is none.
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
