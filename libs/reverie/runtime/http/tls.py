"""The TLS certificate of the HTTP server, reloaded when its files change."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import structlog

from reverie.domain.core.errors import Misconfigured

log = structlog.get_logger()

_CHECK_INTERVAL = 30.0


class Certificate:
    """A certificate and its key; `context` serves the newest that could be read."""

    def __init__(self, cert: Path, key: Path) -> None:
        self._cert, self._key = cert, key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._loaded_stamp = self._file_stamp()
        self._load()

    async def watch_files(self) -> None:
        """Looks every half minute whether the files were renewed; until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            self.reload_if_changed()

    def reload_if_changed(self) -> bool:
        """Whether other files lie there, and were taken; broken ones change nothing."""
        stamp = self._file_stamp()
        if stamp == self._loaded_stamp:
            return False
        self._loaded_stamp = stamp
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

    def _file_stamp(self) -> list[tuple[int, int]]:
        try:
            stats = [path.stat() for path in (self._cert, self._key)]
        except OSError as error:
            raise Misconfigured("tls_cert", f"cannot be read: {error.strerror}") from None
        return [(stat.st_mtime_ns, stat.st_ino) for stat in stats]


def load_certificate(
    cert: Path | None, key: Path | None, source: str = "files"
) -> Certificate | None:
    """The certificate of the settings; None without. Raises `Misconfigured`."""
    if cert is None and key is None:
        if source != "files":
            raise Misconfigured(
                "tls_source", (f"{source} is for `reverie up`: name tls_cert and tls_key")
            )
        return None
    if cert is None or key is None:
        raise Misconfigured("tls_cert", "needs tls_key beside it, and that needs tls_cert")
    return Certificate(cert, key)
