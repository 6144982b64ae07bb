"""Whom a caller of an HTTPS door believes: the authorities of the system, and one of its own."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.domain.errors import Misconfigured

if TYPE_CHECKING:
    # Loaded by whoever makes a context alone: it takes longer than all else here.
    import ssl

OWN_CA = "tls/ca.pem"
"""Where in a home folder the authority lies that `reverie up` made for itself."""


def authority(ca: Path | str | None, home: Path) -> Path | None:
    """The file that is set, else the one that the home folder holds, if any."""
    own = home / OWN_CA
    return Path(ca) if ca else own if own.is_file() else None


def trusting(ca: Path | str | None) -> ssl.SSLContext:
    """A context that believes the system's authorities and those of a PEM file.

    Raises `Misconfigured` where that is none.
    """
    if ca is None:
        return _trusting(None, 0)
    try:
        return _trusting(str(ca), Path(ca).stat().st_mtime_ns)
    except OSError as error:
        raise Misconfigured("ca", f"cannot be used: {error.strerror or error}") from None


@lru_cache(maxsize=8)
def _trusting(ca: str | None, _: int) -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context()
    if ca is not None:
        context.load_verify_locations(ca)
    return context
