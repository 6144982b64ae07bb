"""TLS of the gateway's gRPC door: by files, taken up anew when they are renewed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import structlog

from reverie.domain.errors import Misconfigured
from reverie.runtime.settings import Settings
from reverie.runtime.tls import Certificate

log = structlog.get_logger()


def credentials_of(settings: Settings) -> Any:
    """What the port is opened with: None without TLS. Raises `Misconfigured`."""
    cert, key = settings.grpc_cert or settings.tls_cert, settings.grpc_key
    if settings.grpc_cert is None:
        key = settings.tls_key
    if cert is None:
        return None
    if key is None:
        raise Misconfigured("grpc_key", "is needed beside grpc_cert")
    try:
        held = _Held(cert, key)
    except Misconfigured as error:
        if settings.grpc_cert is None:
            raise
        raise Misconfigured("grpc_cert", error.reason) from None
    return grpc.dynamic_ssl_server_credentials(held.first, held.newest)


class _Held:
    """The files as they are: each new connection is told of those that are there by then."""

    def __init__(self, cert: Path, key: Path) -> None:
        self._paths = cert, key
        # Reads and checks the pair: what gRPC cannot use, it would only say at the first call.
        self._checked = Certificate(cert, key)
        self.first = self._read()

    def newest(self) -> Any:
        """The files where they were renewed; None where they are as before, or no pair."""
        if not self._checked.renew():
            return None
        try:
            return self._read()
        except OSError as error:
            log.error("certificate_not_renewed", reason=str(error))
            return None

    def _read(self) -> Any:
        cert, key = (path.read_bytes() for path in self._paths)
        return grpc.ssl_server_certificate_configuration([(key, cert)])
