"""What all bodies share: requests refuse unknown fields and wrong types.

Times are RFC 3339 with an offset; ids are UUIDs; scores and weights run from 0 to 1.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=64, strip_whitespace=True)]
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
