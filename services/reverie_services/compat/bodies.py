"""Bodies and queries of mem0's and Hindsight's clients: the fields that are used."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

PageNumber = Annotated[int, Field(ge=1, le=1_000_000)]


class CompatModel(BaseModel):
    """Base of bodies and queries of other clients; unknown fields are ignored."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, coerce_numbers_to_str=True, defer_build=True
    )


class Mem0Entities(CompatModel):
    """Whose memories: mem0's names for scopes."""

    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None


class Mem0Condition(Mem0Entities):
    """A condition of a filter. An unknown one is refused: without it, too much is found."""

    model_config = ConfigDict(extra="forbid")


class Mem0Filters(Mem0Condition):
    """A filter: entities, or a conjunction of them."""

    conjunction: list[Mem0Condition] | None = Field(None, alias="AND")


class Mem0Message(CompatModel):
    """A message; `content` may be more than text, which is passed over."""

    content: Any = None


class Mem0FilterBody(CompatModel):
    """The body of get_all."""

    filters: Mem0Filters | None = None


class Mem0AddBody(Mem0Entities):
    """The body of add."""

    filters: Mem0Filters | None = None
    messages: list[Mem0Message] | None = None
    metadata: dict[str, Any] | None = None


class Mem0SearchBody(Mem0FilterBody):
    """The body of search."""

    query: str | None = None
    top_k: int | None = None
    threshold: float | None = None


class Mem0Page(CompatModel):
    """Which page of get_all."""

    page: PageNumber = 1
    page_size: PageNumber = 100


class HindsightBank(CompatModel):
    """The body of create_bank."""

    name: str | None = None


class HindsightBlock(CompatModel):
    """A part of an item: text, or a picture."""

    type: str
    text: str | None = None


class HindsightItem(CompatModel):
    """An item to retain."""

    content: str | list[HindsightBlock] | None = None
    context: str | None = None
    document_id: str | None = None
    timestamp: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class HindsightRetainBody(CompatModel):
    """The body of retain."""

    items: list[HindsightItem] | None = None


class HindsightRecallBody(CompatModel):
    """The body of recall."""

    query: str | None = None
    max_tokens: int | None = None
    tags: list[str] | None = None


class HindsightPage(CompatModel):
    """Which part of list_memories."""

    limit: int = Field(100, ge=0)
    offset: int = Field(0, ge=0)
