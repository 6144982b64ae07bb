"""Documents: what programs keep as it is and in order, beside memory."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from reverie.client import AsyncReverie
from reverie.store.documents import documents as documents_store
from tests.support.stack import Stack, eventually

AWS = "AKIA" + "QWERTYUIOPASDFGH"


async def _put(stack: Stack, collection: str, *keys: str, **more: Any) -> dict[str, Any]:
    documents = [{"key": key, "value": key.upper()} for key in keys]
    body = {"collection": collection, "documents": documents, **more}
    return dict(await stack.post("/v1/documents", body))


async def _keys(stack: Stack, query: str) -> list[str]:
    page = await stack.get(f"/v1/documents?{query}")
    return [item["key"] for item in page["items"]]


async def test_documents_come_back_as_they_were_in_the_order_of_first_writing(stack: Stack) -> None:
    values: list[Any] = [
        {"z": 1, "a": [None, 1.5, -0.0, 2**60, "😀"]}, None, [], "", False,
    ]  # fmt: skip
    documents = [{"key": f"k{n}", "value": value} for n, value in enumerate(values)]
    raw = base64.b64encode(bytes(range(256))).decode()
    documents.append({"key": "bytes", "data": raw})
    await stack.post("/v1/documents", {"collection": "c", "documents": documents})
    await _put(stack, "c", "last")
    assert (await _put(stack, "c", "k0", if_absent=True))["written"] == 0
    # A new value keeps its place.
    await stack.post("/v1/documents", {"collection": "c", "documents": [documents[0]]})
    items = (await stack.get("/v1/documents?collection=c"))["items"]
    assert [item["key"] for item in items] == ["k0", "k1", "k2", "k3", "k4", "bytes", "last"]
    assert [item["value"] for item in items[:5]] == values
    assert list(items[0]["value"]) == ["z", "a"]
    assert items[5]["data"] == raw
    positions = [item["position"] for item in items]
    assert positions == sorted(positions)


async def test_lists_page_in_both_directions_and_by_prefix(stack: Stack) -> None:
    await _put(stack, "c", "b1", "a1", "a2", "b2", "a3")
    assert await _keys(stack, "collection=c&prefix=a") == ["a1", "a2", "a3"]
    assert await _keys(stack, "collection=c&key=a2") == ["a2"]
    assert await _keys(stack, "collection=c&order=newest&limit=2") == ["a3", "b2"]
    second = (await stack.get("/v1/documents?collection=c&key=a1"))["items"][0]["position"]
    assert await _keys(stack, f"collection=c&after={second}") == ["a2", "b2", "a3"]
    assert await _keys(stack, f"collection=c&after={second}&order=newest") == ["b1"]
    listed = await stack.walked("/v1/documents?collection=c", 2)
    assert [item["key"] for item in listed] == ["b1", "a1", "a2", "b2", "a3"]


async def test_collections_are_listed_and_deleted_by_prefix(stack: Stack) -> None:
    for name in ("run/1", "run/1/sub", "run/2", "other"):
        await _put(stack, name, "x", "y")
    listed = (await stack.get("/v1/documents/collections?prefix=run/&limit=2"))["items"]
    counted = [(item["collection"], item["documents"]) for item in listed]
    assert counted == [("run/1", 2), ("run/1/sub", 2)]
    one = {"collection": "run/2", "keys": ["x", "none"]}
    assert (await stack.post("/v1/documents/delete", one))["deleted"] == 1
    all_of_it = {"collection": "run/1", "is_prefix": True}
    assert (await stack.post("/v1/documents/delete", all_of_it))["deleted"] == 4
    left = (await stack.get("/v1/documents/collections"))["items"]
    counted = [(item["collection"], item["documents"]) for item in left]
    assert counted == [("other", 2), ("run/2", 1)]


async def test_an_expired_document_is_gone_and_its_key_is_free(stack: Stack) -> None:
    short = {"key": "a", "value": 1, "expires_in": 0.05}
    await stack.post("/v1/documents", {"collection": "c", "documents": [short]})

    async def gone() -> bool:
        return not await _keys(stack, "collection=c")

    await eventually(gone)
    await _put(stack, "c", "b")
    assert (await _put(stack, "c", "a", if_absent=True))["written"] == 1
    assert await _keys(stack, "collection=c") == ["b", "a"]


async def test_a_page_of_large_documents_is_short_and_the_next_one_goes_on(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents_store, "PAGE_BYTES", 8_500)
    keys = [f"k{number:02}" for number in range(12)]
    documents = [{"key": key, "value": "x" * 900} for key in keys]
    await stack.post("/v1/documents", {"collection": "c", "documents": documents})
    page = await stack.get("/v1/documents?collection=c")
    first = [item["key"] for item in page["items"]]
    assert first == keys[:9]
    rest = await stack.get(f"/v1/documents?collection=c&cursor={page['next']}")
    assert [item["key"] for item in rest["items"]] == keys[9:]
    assert rest["next"] is None


async def test_writers_in_opposite_orders_do_not_stop_each_other(stack: Stack) -> None:
    keys = [f"k{number}" for number in range(100)]
    calls = [_put(stack, "c", *(keys if number % 2 else keys[::-1])) for number in range(4)]
    assert {answer["written"] for answer in await asyncio.gather(*calls)} == {100}


async def test_secrets_are_replaced_in_values_and_refused_in_names(stack: Stack) -> None:
    documents = [{"key": "a", "value": {"log": [f"export KEY={AWS}"]}}]
    body = {"collection": "c", "documents": documents}
    assert (await stack.post("/v1/documents", body))["redactions"] == 1
    [item] = (await stack.get("/v1/documents?collection=c"))["items"]
    assert AWS not in str(item)
    refused = await stack.call("POST", "/v1/documents", {**body, "collection": AWS})
    assert refused.status == 422
    assert "holds a credential" in refused.body["detail"]


async def test_a_key_neither_reads_nor_writes_documents_of_other_scopes(stack: Stack) -> None:
    await _put(stack, "c", "a", scope="project/shop")
    key = stack.key_of(reads=["project/inn/*"], writes=["project/inn/*"])
    asked = "collection=c&scope=project/shop"
    calls: list[tuple[str, str, Any]] = [
        ("GET", f"/v1/documents?{asked}", None),
        ("GET", "/v1/documents/collections?scope=project/shop", None),
        ("POST", "/v1/documents/delete", {"collection": "c", "scope": "project/shop"}),
    ]
    for method, path, body in calls:
        assert (await stack.call(method, path, body, key)).status == 403, path
    written = {"collection": "c", "documents": [{"key": "a", "value": 1}], "scope": "project/shop"}
    assert (await stack.call("POST", "/v1/documents", written, key)).status == 403
    assert await _keys(stack, asked) == ["a"]
    # Another scope has collections of its own.
    inn = {**written, "scope": "project/inn"}
    assert (await stack.call("POST", "/v1/documents", inn, key)).status == 200


async def test_a_document_that_cannot_be_stored_is_refused_with_its_number(stack: Stack) -> None:
    for document, words in (
        ({"key": "a"}, "has neither value nor data"),
        ({"key": "a", "value": 1, "data": "YQ=="}, "has value and data"),
        ({"key": "a", "data": "?"}, "is not base64"),
    ):
        body = {"collection": "c", "documents": [document]}
        reply = await stack.call("POST", "/v1/documents", body)
        assert (reply.status, words in str(reply.body)) == (422, True), reply.body
    twice = [{"key": "a", "value": 1}, {"key": "a", "value": 2}]
    reply = await stack.call("POST", "/v1/documents", {"collection": "c", "documents": twice})
    assert reply.status == 422


async def test_the_client_writes_and_deletes_many_documents_by_several_calls(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as reverie:
        large: list[dict[str, object]] = [
            {"key": f"{n}", "value": "x" * 2_100_000} for n in range(2)
        ]
        small = [{"key": f"small-{n}", "value": n} for n in range(1_050)]
        assert (await reverie.put_documents("many", large + small)).written == 1_052
        keys = [document.key async for document in reverie.list_documents("many")]
        assert keys == [document["key"] for document in large + small]
        deleted = await reverie.delete_documents("many", keys=keys)
        assert (deleted.deleted, deleted.scope) == (1_052, "global")
