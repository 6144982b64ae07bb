"""What all bodies share: requests refuse unknown fields and wrong types.

Times are RFC 3339 with an offset; ids are UUIDs; scores and weights run from 0 to 1.
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

from reverie.domain.blank import is_blank

EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)
MAX_PATH_BYTES = 1024
_SLASHES = re.compile(r"[/\\]")
_DRIVE = re.compile(r"[A-Za-z]:[/\\]|\\\\")


def _dated(given: object) -> object:
    """Refuses a count of seconds, which a lenient parser would take for a time."""
    if isinstance(given, datetime) or (isinstance(given, str) and "-" in given[1:]):
        return given
    raise ValueError("input should be a valid datetime, as 2026-01-31T10:00:00Z")


def _tellable(moment: datetime) -> datetime:
    """A time that exists in every offset, in UTC: the store keeps that, and answers are read from
    there. It knows no offset of 16 hours and more, which ISO 8601 can tell."""
    if not EARLIEST <= moment <= LATEST:
        raise ValueError("lies outside the years 1 to 9999")
    return moment.astimezone(UTC)


def _visible(text: str) -> str:
    if is_blank(text):
        raise ValueError("holds nothing that can be seen")
    return text


def _in_repository(path: str) -> str:
    broken = any(category(char) in {"Cc", "Zl", "Zp"} for char in path)
    if broken or path.startswith("/") or ".." in _SLASHES.split(path) or _DRIVE.match(path):
        raise ValueError("is not a path inside a repository")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise ValueError(f"holds more than {MAX_PATH_BYTES} bytes")
    return path


Moment = Annotated[AwareDatetime, Strict(False), BeforeValidator(_dated), AfterValidator(_tellable)]
RepoPath = Annotated[str, StringConstraints(min_length=1), AfterValidator(_in_repository)]
LineNo = Annotated[int, Field(ge=0, le=2**31 - 1)]

Text = Annotated[
    str, StringConstraints(min_length=1, strip_whitespace=True), AfterValidator(_visible)
]
Name = Annotated[Text, StringConstraints(max_length=200)]
Tag = Annotated[Text, StringConstraints(max_length=64)]
Unit = Annotated[float, Field(ge=0, le=1)]


class Request(BaseModel):
    """A body that a client sends."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Answer(BaseModel):
    """A body that a service sends; clients ignore fields they do not know."""

    model_config = ConfigDict(extra="ignore")


class Problem(Answer):
    """RFC 9457: what was wrong, where, what to do. `code` is stable."""

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


class Page(Answer):
    """A page of a list; `next` is the cursor of the following page, null on the last."""

    next: str | None = None
