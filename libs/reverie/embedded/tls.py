"""TLS among the processes of this machine: whose certificate each shows, and whom they trust."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from reverie.contracts.trust import OWN_CA
from reverie.domain.errors import Misconfigured
from reverie.embedded.addresses import GATEWAY
from reverie.embedded.certificates import Files, ensure, names_of
from reverie.embedded.home import Home
from reverie.embedded.report import Report
from reverie.embedded.watch import pause
from reverie.runtime.settings import Settings

LOOK_SECONDS = 6 * 3600.0
"""How often it is looked whether the certificate ends soon."""


@dataclass(frozen=True)
class Tls:
    """The machine's own certificate, and the files that the gateway shows instead, if any."""

    folder: Path
    names: tuple[str, ...]
    own: Files
    cert: Path | None = None
    key: Path | None = None
    grpc_cert: Path | None = None
    grpc_key: Path | None = None
    ca: Path | None = None

    def told_to(self, service: str) -> dict[str, str | None]:
        """What a service is told: files of the settings are those of the gateway's doors."""
        mine = service == GATEWAY
        paths = {
            "TLS_CERT": self.cert if mine and self.cert else self.own.cert,
            "TLS_KEY": self.key if mine and self.cert else self.own.key,
            "GRPC_CERT": self.grpc_cert if mine else None,
            "GRPC_KEY": self.grpc_key if mine else None,
            # The gateway asks the others, and they show what this machine signed.
            "CA": self.own.ca if mine else self.ca,
        }
        return {name: str(path) if path else None for name, path in paths.items()}

    async def keep_fresh(self, stop: asyncio.Event, report: Report) -> None:
        """Makes the certificate anew before it ends, until `stop`; services take it up."""
        while not stop.is_set():
            await pause(stop, LOOK_SECONDS)
            try:
                await asyncio.to_thread(ensure, self.folder, self.names)
            except OSError as error:
                report.note(f"the certificate cannot be renewed: {error.strerror}")


def tls_of(settings: Settings, home: Home) -> Tls | None:
    """The certificates of the processes to be started; None without TLS.

    Raises `Misconfigured` where a file that is set lacks its other half.
    """
    if settings.tls == "files" and settings.tls_cert is None:
        if settings.tls_key is not None:
            raise Misconfigured("tls_key", "needs tls_cert beside it")
        return None
    if settings.tls_cert is not None and settings.tls_key is None:
        raise Misconfigured("tls_cert", "needs tls_key beside it")
    folder = home.root / Path(OWN_CA).parent
    names = tuple(names_of(settings.host, settings.allowed_hosts))
    try:
        own = ensure(folder, names)
    except OSError as error:
        raise Misconfigured("tls", f"{folder} cannot be written: {error.strerror}") from None
    given = settings.tls_cert, settings.tls_key, settings.grpc_cert, settings.grpc_key
    return Tls(folder, names, own, *given, settings.ca)
