"""Prepares TLS for the local services: which certificate each serves and which CA it trusts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.contracts.tls import LOCAL_CA_PATH
from reverie.domain.core.errors import Misconfigured
from reverie.embedded.home import Home
from reverie.embedded.reporting import GATEWAY, NoteReporter
from reverie.embedded.watchdog import wait_or_stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reverie.embedded.tls.certificates import CertificateFiles
    from reverie.runtime.settings.settings import Settings

RENEWAL_CHECK_SECONDS = 6 * 3600.0
"""How often the expiry of the certificate is checked."""


@dataclass(frozen=True)
class TlsSetup:
    """The machine's own certificate: its folder, the host names in it, and its files."""

    folder: Path
    names: tuple[str, ...]
    own_files: CertificateFiles

    def settings_for(self, service: str, settings: Settings) -> Settings:
        """The settings of one service: files that are set are for the gateway's ports only."""
        is_gateway = service == GATEWAY
        has_files = is_gateway and settings.tls_cert is not None
        return settings.model_copy(
            update={
                "tls_source": "files",
                "tls_cert": settings.tls_cert if has_files else self.own_files.cert,
                "tls_key": settings.tls_key if has_files else self.own_files.key,
                # The gateway calls the others, and they show what this machine signed.
                "ca_file": self.own_files.ca if is_gateway else settings.ca_file,
            }
        )


async def renew_periodically(
    folder: Path, names: Sequence[str], stop: asyncio.Event, reporter: NoteReporter
) -> None:
    """Renews the machine's own certificate before it expires, until `stop`; services reload it."""
    while not stop.is_set():
        await wait_or_stop(stop, RENEWAL_CHECK_SECONDS)
        if stop.is_set():
            return
        # Here and not above: it takes a library that is seldom needed.
        from reverie.embedded.tls.certificates import ensure_certificate

        try:
            await asyncio.to_thread(ensure_certificate, folder, names)
        except OSError as error:
            reporter.note(f"the certificate cannot be renewed: {error.strerror}")


def prepare_tls(settings: Settings, home: Home) -> TlsSetup | None:
    """Returns the machine's own certificate, created if missing; None without TLS.

    Raises `Misconfigured` if only one of certificate and key is set.
    """
    if settings.tls_source == "files" and settings.tls_cert is None:
        if settings.tls_key is not None:
            raise Misconfigured("tls_key", "needs tls_cert beside it")
        return None
    if settings.tls_cert is not None and settings.tls_key is None:
        raise Misconfigured("tls_cert", "needs tls_key beside it")
    # Here and not above: without TLS nothing needs the library for certificates.
    from reverie.embedded.tls.certificates import collect_host_names, ensure_certificate

    folder = home.root / Path(LOCAL_CA_PATH).parent
    names = tuple(collect_host_names(settings.host, settings.allowed_hosts))
    try:
        own_files = ensure_certificate(folder, names)
    except OSError as error:
        raise Misconfigured("tls_source", f"{folder} cannot be written: {error.strerror}") from None
    return TlsSetup(folder, names, own_files)
