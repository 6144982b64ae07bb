"""Bodies of the vault, which stores key-value state beside memory."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import PageResponse, RequestBody, ResponseBody


class VaultPutRequest(RequestBody):
    """`PUT /v1/vault/{key}`.

    Without `secret`, the entry keeps its present setting. `version` is the required current
    version; 0 means that no entry exists.
    """

    value: Any
    secret: bool | None = None
    version: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None


class VaultItem(ResponseBody):
    """An entry without its value.

    `readable` is false if the value is encrypted with a master key that is not configured.
    """

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
    """The result of a put or a delete."""

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
    Counts are given only to a key that may read every scope.
    """

    state: Literal["none", "waiting", "done"]
    requested_at: datetime | None = None
    finished_at: datetime | None = None
    passes: int = 0
    examined: int | None = None
    redacted: int | None = None


class VaultPage(PageResponse):
    """Entries ordered by scope and key, without values."""

    items: list[VaultItem]


class VaultSuggestion(ResponseBody):
    """Content that belongs in the vault: a memory key or a memory.

    The key changes like a variable. The `memory` holds state, such as a counter or a JSON value.
    """

    scope: str
    key: str | None
    memory: UUID | None = None
    versions: int
    advice: str


class VaultSuggestionPage(PageResponse):
    """Content that belongs in the vault: frequently changed keys first, then memories that hold
    state.
    """

    items: list[VaultSuggestion]
