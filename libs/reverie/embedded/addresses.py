"""Where everything is, once it is up."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SERVICES = ("ingest", "dream", "staleness", "recall")
GATEWAY = "recall"
DERIVE = "derive"
"""The other process of ingest: what no request waits for."""


@dataclass(frozen=True)
class Addresses:
    """URLs for people and programs; none holds a password but for `api_key` itself.

    `grpc`: host and port of the gateway's other door. `api_key` is the key of this laptop, kept
    in `key_file`; None where only others know it.
    `new_key` is true when it was made just now.
    """

    home: Path
    services: dict[str, str]
    postgres: str
    nats: str
    grpc: str | None = None
    api_key: str | None = field(repr=False, default=None)
    key_file: Path | None = None
    new_key: bool = False

    @property
    def gateway(self) -> str:
        """The one address an agent needs."""
        return self.services[GATEWAY]

    def note(self) -> dict[str, Any]:
        """The same as plain values, without the key."""
        facts = asdict(self) | {"home": str(self.home), "gateway": self.gateway}
        return {k: v for k, v in facts.items() if k not in {"api_key", "new_key", "key_file"}}
