"""Routes for documents: what programs keep as it is, in order, and never recalled."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from reverie.contracts.base import NonBlankStr
from reverie.contracts.documents import (
    CollectionBody,
    CollectionPage,
    DeleteDocumentsRequest,
    DeleteDocumentsResponse,
    DocumentBody,
    DocumentPage,
    DocumentWrite,
    PutDocumentsRequest,
    PutDocumentsResponse,
)
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope
from reverie.domain.core.errors import InvalidInput
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import (
    CursorPosition,
    PageQuery,
    cut_page,
    decode_cursor,
    encode_cursor,
)
from reverie.runtime.http.routes import RouteTable
from reverie.store.documents.documents import DocumentStore, NewDocument, StoredDocument

NameQuery = Annotated[str, Field(max_length=1_000)]


class ListDocumentsQuery(PageQuery):
    """Which documents: one `key`, or those whose keys begin with `prefix`.

    `after`: those beyond a position, in the direction of `order`.
    """

    collection: NonBlankStr
    scope: NonBlankStr | None = None
    key: NonBlankStr | None = None
    prefix: NameQuery = ""
    after: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    order: Literal["oldest", "newest"] = "oldest"


class ListCollectionsQuery(PageQuery):
    """Which collections: those whose names begin with `prefix`."""

    scope: NonBlankStr | None = None
    prefix: NameQuery = ""


class DocumentCursor(CursorPosition):
    """The place of the last document of a page."""

    position: int


class CollectionCursor(CursorPosition):
    """The name of the last collection of a page."""

    collection: str


routes = RouteTable[DocumentStore]()


@routes.add("POST /v1/documents")
async def put_documents(
    store: DocumentStore, call: Call[PutDocumentsRequest, None]
) -> PutDocumentsResponse:
    """Store documents."""
    body = call.body
    scope = _resolve_scope(call.principal, body.scope)
    call.principal.check_write(scope)
    redactor, now = call.redactor.within(scope), datetime.now(UTC)
    for name in (body.collection, *(document.key for document in body.documents)):
        if redactor.redact(name).count:
            raise InvalidInput("key", "holds a credential: keys and collections are shown")
    redactions, documents = 0, []
    for number, document in enumerate(body.documents):
        clean = redactor.redact_value({"": document.value})
        redactions += clean.count
        documents.append(
            NewDocument(
                document.key,
                clean.value[""],
                _decode_data(document, number),
                now + timedelta(seconds=document.expires_in) if document.expires_in else None,
            )
        )
    written = await store.put(call.principal, scope, body.collection, documents, body.if_absent)
    return PutDocumentsResponse(scope=scope, written=written, redactions=redactions)


@routes.add("GET /v1/documents")
async def list_documents(
    store: DocumentStore, call: Call[None, ListDocumentsQuery]
) -> DocumentPage:
    """List the documents of a collection."""
    query, scope = call.query, _resolve_scope(call.principal, call.query.scope)
    call.principal.check_read([scope])
    after = decode_cursor(query.cursor, DocumentCursor)
    rows, is_cut = await store.list_documents(
        call.principal,
        scope,
        query.collection,
        None if query.key is None else [query.key],
        query.prefix,
        after.position if after else query.after,
        query.order == "newest",
        query.limit,
    )
    cursor = encode_cursor(DocumentCursor(position=rows[-1].position)) if is_cut else None
    return DocumentPage(items=[_build_body(row) for row in rows], next=cursor)


@routes.add("GET /v1/documents/collections")
async def list_collections(
    store: DocumentStore, call: Call[None, ListCollectionsQuery]
) -> CollectionPage:
    """List collections of documents."""
    query, scope = call.query, _resolve_scope(call.principal, call.query.scope)
    call.principal.check_read([scope])
    after = decode_cursor(query.cursor, CollectionCursor)
    rows = await store.list_collections(
        call.principal, scope, query.prefix, after.collection if after else "", query.limit + 1
    )
    items, cursor = cut_page(
        rows, query.limit, lambda row: CollectionCursor(collection=row.collection)
    )
    return CollectionPage(
        items=[
            CollectionBody(**vars(item), created_at=item.created, updated_at=item.updated)
            for item in items
        ],
        next=cursor,
    )


@routes.add("POST /v1/documents/delete")
async def delete_documents(
    store: DocumentStore, call: Call[DeleteDocumentsRequest, None]
) -> DeleteDocumentsResponse:
    """Delete documents."""
    body = call.body
    scope = _resolve_scope(call.principal, body.scope)
    call.principal.check_write(scope)
    deleted = await store.delete(call.principal, scope, body.collection, body.keys, body.is_prefix)
    return DeleteDocumentsResponse(scope=scope, deleted=deleted)


def _resolve_scope(principal: Principal, scope: str | None) -> str:
    return parse_scope(scope) if scope else principal.default_scope()


def _decode_data(document: DocumentWrite, number: int) -> bytes | None:
    """The bytes of a document; None if it is a value. Raises `InvalidInput`."""
    where = f"documents.{number}"
    if document.data is None:
        if document.value is None and "value" not in document.model_fields_set:
            raise InvalidInput(where, "has neither value nor data")
        return None
    if document.value is not None:
        raise InvalidInput(where, "has value and data: give one of them")
    try:
        return base64.b64decode(document.data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"{where}.data", "is not base64") from None


def _build_body(document: StoredDocument) -> DocumentBody:
    data = None if document.data is None else base64.b64encode(document.data).decode()
    return DocumentBody(
        key=document.key,
        position=document.position,
        value=document.value,
        data=data,
        created_at=document.created,
        updated_at=document.updated,
        expires_at=document.expires,
    )
