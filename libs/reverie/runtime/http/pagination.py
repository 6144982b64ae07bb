"""Cursor pagination: query parameters of lists, opaque cursors, page cutting."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reverie.contracts.base import NonBlankStr
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope
from reverie.domain.core.errors import InvalidInput
from reverie.runtime.http.validation import QueryParams

_MAX_CURSOR_LENGTH = 1000

Row = TypeVar("Row")


class CursorPosition(BaseModel):
    """Base of what a cursor holds: the sort key of the last row of a page."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class IdCursor(CursorPosition):
    """The cursor of a list in the order of ids."""

    id: UUID


PositionT = TypeVar("PositionT", bound=CursorPosition)


class PageQuery(QueryParams):
    """The parameters of every list; a list adds its filters."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: Annotated[str, Field(min_length=1, max_length=_MAX_CURSOR_LENGTH)] | None = None

    def before_id(self) -> UUID | None:
        """The id below which a page begins of a list that runs from the newest to the oldest."""
        position = decode_cursor(self.cursor, IdCursor)
        return position.id if position else None


class ScopedQuery(PageQuery):
    """The parameters of a list that a scope narrows."""

    scope: NonBlankStr | None = None

    def readable_scope(self, principal: Principal) -> str | None:
        """The scope; None for all.

        Raises `InvalidInput`, or `Forbidden` if it may not be read.
        """
        if self.scope is None:
            return None
        scope = parse_scope(self.scope)
        principal.check_read([scope])
        return scope


def encode_cursor(position: CursorPosition) -> str:
    """A position as URL-safe text."""
    return base64.urlsafe_b64encode(position.model_dump_json().encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, position_type: type[PositionT]) -> PositionT | None:
    """The position in a cursor, None without one; raises `InvalidInput` if it is malformed."""
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return position_type.model_validate_json(
            base64.b64decode(padded, altchars=b"-_", validate=True)
        )
    except (ValidationError, binascii.Error, UnicodeEncodeError):
        raise InvalidInput("cursor", "is not a cursor that this list gave") from None


def cut_page(
    rows: Sequence[Row], limit: int, position: Callable[[Row], CursorPosition]
) -> tuple[list[Row], str | None]:
    """The first `limit` of rows read with `limit + 1`, and the cursor of the rest."""
    page = list(rows[:limit])
    return page, encode_cursor(position(page[-1])) if len(rows) > limit else None
