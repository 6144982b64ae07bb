"""Calls about documents: what programs keep as it is, in order, beside memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from reverie.client.base import ClientBase, LazyModule, drop_none

if TYPE_CHECKING:
    from reverie.contracts import documents as of_documents
else:
    of_documents = LazyModule("reverie.contracts.documents")


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
        """Stores up to 1,000 documents: each `key` with a `value` (JSON) or `data` (base64).

        `if_absent`: documents that are there stay as they are.
        """
        body = {"collection": collection, "documents": list(documents), "if_absent": if_absent}
        body |= drop_none(scope=scope)
        return await self.request(
            of_documents.PutDocumentsResponse, "POST", "/v1/documents", body=body
        )

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
        body = {"collection": collection, "is_prefix": is_prefix}
        body |= drop_none(scope=scope, keys=None if keys is None else list(keys))
        return await self.request(
            of_documents.DeleteDocumentsResponse, "POST", "/v1/documents/delete", body=body
        )
