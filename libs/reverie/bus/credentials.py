"""Who a client of the bus is where its address names no user: by a credentials file or a seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.contracts.trust import trusting
from reverie.domain.errors import Misconfigured


@dataclass(frozen=True)
class Credentials:
    """Files that say who one is, read again at each connection; at most one of the first two.

    `creds`: what an operator of NATS hands out (a JWT and its seed). `nkey`: a seed alone.
    `ca`: authorities to trust beside the system's, where the address says tls.
    """

    creds: Path | None = None
    nkey: Path | None = None
    ca: Path | None = None

    def options(self, url: str) -> dict[str, Any]:
        """What the driver is told. Raises `Misconfigured` naming the setting."""
        if self.creds is not None and self.nkey is not None:
            raise Misconfigured("nats_creds", "names one user and nats_nkey another: choose one")
        told: dict[str, Any] = {}
        if self.creds is not None:
            told["user_credentials"] = str(_readable("nats_creds", self.creds))
        if self.nkey is not None:
            told["nkeys_seed"] = str(_readable("nats_nkey", self.nkey))
        if self.ca is not None and url.startswith(("tls://", "wss://")):
            told["tls"] = trusting(self.ca)
        return told

    @property
    def named(self) -> bool:
        """Whether a file says who one is."""
        return self.creds is not None or self.nkey is not None


NOBODY = Credentials()
"""Who the address names, if anybody."""


def _readable(setting: str, path: Path) -> Path:
    try:
        path.open("rb").close()
    except OSError as error:
        raise Misconfigured(setting, f"cannot be read: {error.strerror}") from None
    return path
