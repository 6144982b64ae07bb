"""Base classes and field types shared by all request and response bodies.

Requests reject unknown fields and wrong types. Timestamps are RFC 3339 with an offset; ids are
UUIDs; scores and weights range from 0 to 1.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any
from unicodedata import category

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
)

from reverie.domain.text.characters import is_blank

MIN_TIMESTAMP = datetime(1, 1, 2, tzinfo=UTC)
MAX_TIMESTAMP = datetime(9999, 12, 30, tzinfo=UTC)
MAX_PATH_BYTES = 1024
_PATH_SEPARATORS = re.compile(r"[/\\]")
_WINDOWS_ROOT = re.compile(r"[A-Za-z]:[/\\]|\\\\")


def _reject_numeric_timestamp(value: object) -> object:
    """Rejects numbers, which a lenient parser would read as seconds."""
    if isinstance(value, datetime) or (isinstance(value, str) and "-" in value[1:]):
        return value
    raise ValueError("input should be a valid datetime, as 2026-01-31T10:00:00Z")


def _normalize_to_utc(value: datetime) -> datetime:
    """Converts a timestamp to UTC, the only offset in the store.

    PostgreSQL rejects offsets of 16 hours and more, which ISO 8601 allows.
    """
    if not MIN_TIMESTAMP <= value <= MAX_TIMESTAMP:
        raise ValueError("lies outside the years 1 to 9999")
    return value.astimezone(UTC)


def _require_visible_text(text: str) -> str:
    if is_blank(text):
        raise ValueError("holds nothing that can be seen")
    return text


def _validate_repository_path(path: str) -> str:
    has_control_characters = any(category(char) in {"Cc", "Zl", "Zp"} for char in path)
    if (
        has_control_characters
        or path.startswith("/")
        or ".." in _PATH_SEPARATORS.split(path)
        or _WINDOWS_ROOT.match(path)
    ):
        raise ValueError("is not a path inside a repository")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise ValueError(f"holds more than {MAX_PATH_BYTES} bytes")
    return path


Timestamp = Annotated[
    AwareDatetime,
    Strict(False),
    BeforeValidator(_reject_numeric_timestamp),
    AfterValidator(_normalize_to_utc),
]
RepoPath = Annotated[
    str, StringConstraints(min_length=1), AfterValidator(_validate_repository_path)
]
LineNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]

NonBlankStr = Annotated[
    str,
    StringConstraints(min_length=1, strip_whitespace=True),
    AfterValidator(_require_visible_text),
]
Name = Annotated[NonBlankStr, StringConstraints(max_length=200)]
Tag = Annotated[NonBlankStr, StringConstraints(max_length=64)]
UnitInterval = Annotated[float, Field(ge=0, le=1)]


class RequestBody(BaseModel):
    """A body that a client sends."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class ResponseBody(BaseModel):
    """A body that a service sends; clients ignore fields they do not know."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class Problem(ResponseBody):
    """An error, as an RFC 9457 problem document.

    `detail` says what is wrong and what to do. `code` is stable. `current` is the stored state that
    conflicts with the request.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    instance: str | None = None
    trace_id: str | None = None
    errors: list[dict[str, str]] | None = None
    current: dict[str, Any] | None = None


class PageResponse(ResponseBody):
    """A page of a list; `next` is the cursor of the following page, null on the last."""

    next: str | None = None
