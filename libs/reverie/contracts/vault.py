"""Bodies of the vault: state beside memory."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from reverie.contracts.base import Answer, Page, Request


class VaultPut(Request):
    """`PUT /v1/vault/{key}`. `secret` unset: as the entry is. `version`: what must stand there
    now, 0 for nothing."""

    value: Any
    secret: bool | None = None
    version: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None


class VaultItem(Answer):
    """An entry without its value."""

    scope: str
    key: str
    secret: bool
    version: int
    by: str
    created_at: datetime
    updated_at: datetime


class VaultValue(VaultItem):
    """An entry with its value."""

    value: Any


class VaultWritten(Answer):
    """What a put or a delete did."""

    scope: str
    key: str
    secret: bool | None = None
    version: int
    deleted: bool = False


class VaultPage(Page):
    """Entries in the order of scope and key; never a value."""

    items: list[VaultItem]


class VaultAdvised(Answer):
    """A key of memories that is written like a variable."""

    scope: str
    key: str
    versions: int
    advice: str


class VaultAdvice(Answer):
    """Keys that belong into the vault, busiest first."""

    items: list[VaultAdvised]
