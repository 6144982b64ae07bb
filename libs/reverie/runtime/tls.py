"""Certificates of the HTTP door: read from files, and read again when they are renewed."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import structlog

from reverie.domain.errors import Misconfigured

log = structlog.get_logger()

_LOOK_SECONDS = 30.0


class Certificate:
    """A certificate and its key; `context` serves the newest that could be read."""

    def __init__(self, cert: Path, key: Path) -> None:
        self._cert, self._key = cert, key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._seen = self._stamp()
        self._load()

    async def keep_fresh(self) -> None:
        """Looks every half minute whether the files were renewed; until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.renew()

    def renew(self) -> bool:
        """Whether other files lie there, and were taken; broken ones change nothing."""
        now = self._stamp()
        if now == self._seen:
            return False
        self._seen = now
        try:
            self._load()
        except Misconfigured as error:
            log.error("certificate_not_renewed", reason=str(error))
            return False
        log.info("certificate_renewed")
        return True

    def _load(self) -> None:
        try:
            self.context.load_cert_chain(self._cert, self._key)
        except (OSError, ssl.SSLError) as error:
            raise Misconfigured("tls_cert", f"cannot be used with tls_key: {error}") from None

    def _stamp(self) -> list[tuple[int, int]]:
        try:
            found = [path.stat() for path in (self._cert, self._key)]
        except OSError as error:
            raise Misconfigured("tls_cert", f"cannot be read: {error.strerror}") from None
        return [(one.st_mtime_ns, one.st_ino) for one in found]


def certificate_of(
    cert: Path | None, key: Path | None, source: str = "files"
) -> Certificate | None:
    """The certificate of the settings; None without. Raises `Misconfigured`."""
    if cert is None and key is None:
        if source != "files":
            raise Misconfigured("tls", f"{source} is for `reverie up`: name tls_cert and tls_key")
        return None
    if cert is None or key is None:
        raise Misconfigured("tls_cert", "needs tls_key beside it, and that needs tls_cert")
    return Certificate(cert, key)
