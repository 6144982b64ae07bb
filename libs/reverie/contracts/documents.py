"""Bodies of documents, which programs keep beside memory: transcripts, checkpoints, files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from reverie.contracts.base import NonBlankStr, PageResponse, RequestBody, ResponseBody

DocumentName = Annotated[NonBlankStr, StringConstraints(max_length=1_000)]
MAX_DOCUMENTS = 1_000
"""The most documents of a call."""


class DocumentWrite(RequestBody):
    """A document: `value`, which is JSON, or `data`, which is bytes in base64.

    `expires_in`: after so many seconds it is gone.
    """

    key: DocumentName
    value: Any = None
    data: str | None = None
    expires_in: Annotated[float, Field(gt=0, le=315_360_000)] | None = None


class PutDocumentsRequest(RequestBody):
    """`POST /v1/documents`. A document with a key that is there replaces it, and keeps its place.

    `if_absent`: one that is there stays as it is. `scope`: that of the key, unless it is given.
    """

    collection: DocumentName
    documents: Annotated[list[DocumentWrite], Field(min_length=1, max_length=MAX_DOCUMENTS)]
    scope: NonBlankStr | None = None
    if_absent: bool = False

    @model_validator(mode="after")
    def _check_keys(self) -> PutDocumentsRequest:
        keys = [document.key for document in self.documents]
        if len(set(keys)) < len(keys):
            raise ValueError("documents have the same key twice")
        return self


class PutDocumentsResponse(ResponseBody):
    """`written` counts the documents that were written. `redactions` counts the secrets that were
    replaced in values.
    """

    scope: str
    written: int
    redactions: int = 0


class DocumentBody(ResponseBody):
    """A document. `position` orders those of a collection by when each was written first."""

    key: str
    position: int
    value: Any = None
    data: str | None = None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None


class DocumentPage(PageResponse):
    """`GET /v1/documents`: documents of a collection, by position."""

    items: list[DocumentBody] = Field(default_factory=list)


class CollectionBody(ResponseBody):
    """A collection, and how many documents it has."""

    collection: str
    documents: int
    created_at: datetime
    updated_at: datetime


class CollectionPage(PageResponse):
    """`GET /v1/documents/collections`, by name."""

    items: list[CollectionBody] = Field(default_factory=list)


class DeleteDocumentsRequest(RequestBody):
    """`POST /v1/documents/delete`: the documents of `keys`, or all of the collection.

    `is_prefix`: also of every collection whose name begins with this one.
    """

    collection: DocumentName
    keys: Annotated[list[DocumentName], Field(min_length=1, max_length=MAX_DOCUMENTS)] | None = None
    is_prefix: bool = False
    scope: NonBlankStr | None = None


class DeleteDocumentsResponse(ResponseBody):
    """`deleted` counts the documents that were there."""

    scope: str
    deleted: int
