"""The addresses of the running services, and the interface for reporting start-up progress."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

SERVICES = ("ingest", "dream", "staleness", "recall")
GATEWAY = "recall"
ALL = "all"
"""The process of the four services."""
DERIVE = "derive"
"""The process that derives and dreams, and what of ingest it runs."""
PROCESS_NAMES = {ALL: "the process of the services", DERIVE: "the process that derives"}
DREAM_WORKER = "dream-worker"
"""Parts of dream that the process runs."""


def describe_process(name: str) -> str:
    """How a process is called to people."""
    return PROCESS_NAMES.get(name, f"the process {name}")


@dataclass(frozen=True)
class Addresses:
    """URLs for people and programs; none contains a password except `api_key` itself.

    `grpc`: host and port of the gateway's gRPC server. `api_key` is the key of this laptop, stored
    in `key_file`; None if it is unknown on this machine. `new_key` is true if it was created just
    now.
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

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, without the key."""
        fields = asdict(self) | {"home": str(self.home), "gateway": self.gateway}
        return {k: v for k, v in fields.items() if k not in {"api_key", "new_key", "key_file"}}


class NoteReporter(Protocol):
    """Called from the event loop."""

    def note(self, text: str) -> None:
        """Something a person should know."""


class ProgressReporter(NoteReporter, Protocol):
    """Called from the event loop, `migrating` and `progress` also from another thread."""

    def step(self, text: str) -> None:
        """Reports the current step."""

    def migrating(self, name: str, number: int, of: int) -> None:
        """A migration of the schema that begins."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Bytes fetched of a download."""

    def failed(self, name: str, log: Path, lines: str) -> None:
        """Reports a part that did not start, and the end of its log."""

    def up(self, addresses: Addresses) -> None:
        """All parts are ready."""

    def stopping(self) -> None:
        """The end has begun."""
