"""The calls that change documents."""

from __future__ import annotations

from typing import LiteralString

from tests.ingest.idempotency.changing_call import Case, text
from tests.support.stack import Stack

_DOCUMENTS: LiteralString = "select count(*) from document where collection = %s"


async def put_document(stack: Stack, n: int) -> Case:
    body = {"collection": f"log{n}", "documents": [{"key": "a", "value": text("log", n)}]}
    return Case("/v1/documents", body, _DOCUMENTS, f"log{n}")


async def delete_documents(stack: Stack, n: int) -> Case:
    body = {"collection": f"gone{n}", "documents": [{"key": "a", "value": 1}]}
    await stack.post("/v1/documents", body)
    return Case("/v1/documents/delete", {"collection": f"gone{n}"}, _DOCUMENTS, f"gone{n}")
