"""NATS credentials: a credentials file, an nkey seed, and the CA that clients trust."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.contracts.tls import create_tls_context
from reverie.domain.core.errors import Misconfigured


@dataclass(frozen=True)
class NatsCredentials:
    """Files with the identity of a client, read again at each connection.

    At most one of the first two is set. `creds`: a file from a NATS operator (a JWT and its seed).
    `nkey`: a seed alone. `ca`: authorities to trust in addition to the system's, if the address
    uses tls.
    """

    creds: Path | None = None
    nkey: Path | None = None
    ca: Path | None = None

    def connect_options(self, url: str) -> dict[str, Any]:
        """Returns the connection options of the driver.

        Raises `Misconfigured` naming the setting.
        """
        if self.creds is not None and self.nkey is not None:
            raise Misconfigured("nats_creds", "names one user and nats_nkey another: choose one")
        options: dict[str, Any] = {}
        if self.creds is not None:
            options["user_credentials"] = str(_check_readable("nats_creds", self.creds))
        if self.nkey is not None:
            options["nkeys_seed"] = str(_check_readable("nats_nkey", self.nkey))
        if self.ca is not None and url.startswith(("tls://", "wss://")):
            options["tls"] = create_tls_context(self.ca)
        return options

    @property
    def has_identity(self) -> bool:
        """Whether a file contains an identity."""
        return self.creds is not None or self.nkey is not None


NO_CREDENTIALS = NatsCredentials()
"""The user named in the address, if any."""


def _check_readable(setting: str, path: Path) -> Path:
    try:
        path.open("rb").close()
    except OSError as error:
        raise Misconfigured(setting, f"cannot be read: {error.strerror}") from None
    return path
