"""Lists by the page: a cursor is opaque to clients and holds where the last page ended."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reverie.contracts.base import Text
from reverie.domain.access import Principal
from reverie.domain.errors import Invalid
from reverie.domain.scopes import parse_scope
from reverie.runtime.body import Query

_LONGEST = 1000

Row = TypeVar("Row")


class Position(BaseModel):
    """Base of what a cursor holds: the sort key of the last row of a page."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ById(Position):
    """The cursor of a list in the order of ids."""

    id: UUID


Where = TypeVar("Where", bound=Position)


class PageQuery(Query):
    """The parameters of every list; a list adds its filters."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: Annotated[str, Field(min_length=1, max_length=_LONGEST)] | None = None

    def below(self) -> UUID | None:
        """The id below which a page begins of a list that runs from the newest to the oldest."""
        position = decode_cursor(self.cursor, ById)
        return position.id if position else None


class ScopedQuery(PageQuery):
    """The parameters of a list that a scope narrows."""

    scope: Text | None = None

    def readable(self, who: Principal) -> str | None:
        """The scope, None for all. Raises `Invalid`, or `Forbidden` where it may not be read."""
        if self.scope is None:
            return None
        scope = parse_scope(self.scope)
        who.check_read([scope])
        return scope


def encode_cursor(position: Position) -> str:
    """A position as URL-safe text."""
    return base64.urlsafe_b64encode(position.model_dump_json().encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, kind: type[Where]) -> Where | None:
    """The position in a cursor, None without one; raises `Invalid` where it is not ours."""
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return kind.model_validate_json(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValidationError, binascii.Error, UnicodeEncodeError):
        raise Invalid("cursor", "is not a cursor that this list gave") from None


def cut_page(
    rows: Sequence[Row], limit: int, position: Callable[[Row], Position]
) -> tuple[list[Row], str | None]:
    """The first `limit` of rows read with `limit + 1`, and the cursor of the rest."""
    page = list(rows[:limit])
    return page, encode_cursor(position(page[-1])) if len(rows) > limit else None
