"""What the supervisor tells whoever watches."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from reverie.embedded.addresses import Addresses


class Report(Protocol):
    """Called from the event loop, `migrating` and `progress` also from another thread."""

    def step(self, text: str) -> None:
        """What is being done now."""

    def migrating(self, name: str, number: int, of: int) -> None:
        """A migration of the schema that begins."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Bytes fetched of a download."""

    def note(self, text: str) -> None:
        """Something a person should know."""

    def failed(self, name: str, log: Path, lines: str) -> None:
        """A part that did not come up, and the end of its log."""

    def up(self, addresses: Addresses) -> None:
        """All parts are ready."""

    def stopping(self) -> None:
        """The end has begun."""
