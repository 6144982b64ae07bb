"""Calls about documents: what programs keep as it is, in order, beside memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from reverie.client.base import ClientBase, LazyModule, drop_none

if TYPE_CHECKING:
    from reverie.contracts import documents as of_documents
else:
    of_documents = LazyModule("reverie.contracts.documents")

_CALL_BYTES = 4_000_000
"""The most bytes of several documents in one call."""


class DocumentCalls(ClientBase):
    """Calls about documents. Without `scope`, they are of the scope of the key."""

    async def put_documents(
        self,
        collection: str,
        documents: Sequence[Mapping[str, Any]],
        *,
        scope: str | None = None,
        if_absent: bool = False,
    ) -> of_documents.PutDocumentsResponse:
        """Stores documents in order: each `key` with a `value` (JSON) or `data` (base64).

        Many go by several calls; one that fails leaves those before it stored. `if_absent`:
        documents that are there stay as they are.
        """
        total = of_documents.PutDocumentsResponse(scope="", written=0)
        for batch in _split_documents(documents):
            body = {"collection": collection, "documents": batch, "if_absent": if_absent}
            body |= drop_none(scope=scope)
            answer = await self.request(
                of_documents.PutDocumentsResponse, "POST", "/v1/documents", body=body
            )
            total = of_documents.PutDocumentsResponse(
                scope=answer.scope,
                written=total.written + answer.written,
                redactions=total.redactions + answer.redactions,
            )
        return total

    def list_documents(
        self,
        collection: str,
        *,
        scope: str | None = None,
        key: str | None = None,
        prefix: str | None = None,
        after: int | None = None,
        order: Literal["oldest", "newest"] | None = None,
    ) -> AsyncIterator[of_documents.DocumentBody]:
        """The documents of a collection, in the order in which they were written first.

        `after`: those beyond a position.
        """
        query = drop_none(collection=collection, scope=scope, key=key, prefix=prefix)
        query |= drop_none(after=after, order=order)
        return self.paginate(of_documents.DocumentPage, "/v1/documents", query)

    def list_collections(
        self, *, scope: str | None = None, prefix: str | None = None
    ) -> AsyncIterator[of_documents.CollectionBody]:
        """The collections whose names begin with `prefix`, by name."""
        query = drop_none(scope=scope, prefix=prefix)
        return self.paginate(of_documents.CollectionPage, "/v1/documents/collections", query)

    async def delete_documents(
        self,
        collection: str,
        *,
        keys: Sequence[str] | None = None,
        is_prefix: bool = False,
        scope: str | None = None,
    ) -> of_documents.DeleteDocumentsResponse:
        """Deletes documents by their keys, or all of a collection.

        `is_prefix`: also of every collection whose name begins with this one.
        """
        size = of_documents.MAX_DOCUMENTS
        batches: list[list[str] | None] = [None]
        if keys is not None:
            batches = [list(keys[at : at + size]) for at in range(0, len(keys), size)] or [[]]
        total = of_documents.DeleteDocumentsResponse(scope="", deleted=0)
        for batch in batches:
            body = {"collection": collection, "is_prefix": is_prefix}
            body |= drop_none(scope=scope, keys=batch)
            answer = await self.request(
                of_documents.DeleteDocumentsResponse, "POST", "/v1/documents/delete", body=body
            )
            total = of_documents.DeleteDocumentsResponse(
                scope=answer.scope, deleted=total.deleted + answer.deleted
            )
        return total


def _split_documents(documents: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Batches that one call takes; no documents are one batch, which is refused."""
    from pydantic_core import to_json

    batch: list[Mapping[str, Any]] = []
    size = 0
    for document in documents:
        length = len(to_json(document))
        if batch and (len(batch) == of_documents.MAX_DOCUMENTS or size + length > _CALL_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += length
    yield batch
