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

    `creds`: a file from a NATS operator (a JWT and its seed), or with the seed of an nkey alone.
    `ca`: authorities to trust in addition to the system's, if the address uses tls.
    """

    creds: Path | None = None
    ca: Path | None = None

    def connect_options(self, url: str) -> dict[str, Any]:
        """Returns the connection options of the driver.

        Raises `Misconfigured` naming the setting.
        """
        options: dict[str, Any] = {}
        if self.creds is not None:
            try:
                identity = self.creds.read_bytes()
            except OSError as error:
                reason = f"cannot be read: {error.strerror}"
                raise Misconfigured("nats_creds", reason) from None
            if b"NATS USER JWT" in identity:
                options["user_credentials"] = str(self.creds)
            elif identity.lstrip().startswith(b"SU"):
                options["nkeys_seed"] = str(self.creds)
            else:
                raise Misconfigured("nats_creds", "holds neither credentials nor a seed (SU...)")
        if self.ca is not None and url.startswith(("tls://", "wss://")):
            options["tls"] = create_tls_context(self.ca)
        return options

    @property
    def has_identity(self) -> bool:
        """Whether a file holds an identity."""
        return self.creds is not None


NO_CREDENTIALS = NatsCredentials()
"""The user named in the address, if any."""
