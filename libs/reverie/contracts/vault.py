"""Bodies of the vault, which stores key-value state beside memory."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import PageResponse, RequestBody, ResponseBody


class VaultPutRequest(RequestBody):
    """`PUT /v1/vault/{key}`. `secret` unset: as the entry is. `version`: what must stand there
    now, 0 for nothing."""

    value: Any
    secret: bool | None = None
    version: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None


class VaultItem(ResponseBody):
    """An entry without its value. Not `readable`: sealed under a master key that is not set."""

    scope: str
    key: str
    secret: bool
    readable: bool
    version: int
    updated_by: str
    created_at: datetime
    updated_at: datetime


class VaultValue(VaultItem):
    """An entry with its value."""

    value: Any


class VaultWriteResponse(ResponseBody):
    """What a put or a delete did."""

    scope: str
    key: str
    secret: bool | None = None
    version: int
    deleted: bool = False
    hints: list[str] = Field(default_factory=list)


class RedactionBackfillStatus(ResponseBody):
    """The progress of the search for vault secrets in texts stored before.

    `redacted` counts the rows that contained a secret. `passes` counts the passes over all texts:
    a second one follows shortly after the first, for texts that were being written meanwhile.
    """

    state: Literal["none", "waiting", "done"]
    requested_at: datetime | None = None
    finished_at: datetime | None = None
    passes: int = 0
    examined: int = 0
    redacted: int = 0


class VaultPage(PageResponse):
    """Entries in the order of scope and key; never a value."""

    items: list[VaultItem]


class VaultSuggestion(ResponseBody):
    """A key of memories that is written like a variable, or a `memory` that is state: a counter or
    a JSON blob."""

    scope: str
    key: str | None
    memory: UUID | None = None
    versions: int
    advice: str


class VaultSuggestionPage(PageResponse):
    """What belongs into the vault: busy keys first, then memories that are state."""

    items: list[VaultSuggestion]
