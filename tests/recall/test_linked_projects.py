"""Projects that belong together: recall across links, and which project knows something."""

from __future__ import annotations

from typing import Any

from reverie.domain.access.principals import KeyRole
from tests.support.stack import Stack

REFUNDS = "Refunds are booked against the ledger account 4711, never against revenue."
QUESTION = "Which ledger account are refunds booked against?"


async def _shop_and_payments(stack: Stack, **link: Any) -> None:
    for scope, content in (
        ("project/shop", "The basket page is rendered on the server."),
        ("project/payments", REFUNDS),
        ("project/payments/topic/ledger", "The ledger of refunds is closed at midnight UTC."),
        ("project/lamps", "Street lamps are lit at dusk."),
    ):
        await stack.post("/v1/remember", {"content": content, "scope": scope})
    assert (await stack.call("PUT", "/v1/projects/shop/links/payments", link)).status == 200
    await stack.settled()


def _reader_of(stack: Stack, *projects: str) -> str:
    scopes = tuple(f"project/{project}/*" for project in projects)
    return stack.key_of(reads=scopes, writes=scopes, role=KeyRole.WRITER)


async def _recall(stack: Stack, key: str | None = None, **fields: Any) -> list[dict[str, Any]]:
    body = {"query": QUESTION, "project": "shop", **fields}
    return list((await stack.post("/v1/recall", body, key=key))["memories"])


async def test_a_recall_and_a_turn_find_what_a_linked_project_knows_and_mark_it(
    stack: Stack,
) -> None:
    await _shop_and_payments(stack)
    hits = {hit["content"]: hit for hit in await _recall(stack)}
    assert hits[REFUNDS]["linked"]
    assert hits[REFUNDS]["scope"] == "project/payments"
    assert not any(hit["linked"] for hit in hits.values() if hit["scope"] == "project/shop")
    assert not any(hit["scope"] == "project/lamps" for hit in hits.values())
    # A link works both ways, and may be left aside.
    back = await _recall(stack, project="payments", query="How is the basket page rendered?")
    assert [hit["linked"] for hit in back if hit["scope"] == "project/shop"] == [True]
    assert REFUNDS not in {hit["content"] for hit in await _recall(stack, linked_projects=False)}
    alone = await _recall(stack, project=None, scopes=["project/shop"])
    assert {hit["scope"] for hit in alone} == {"project/shop"}
    # So does a turn of a session.
    start = {"agent": "ann", "project": "shop"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    answer = await stack.post("/v1/preflow", {"session": session, "query": QUESTION})
    [item] = [item for item in answer["items"] if item["scope"] == "project/payments"]
    assert "account 4711" in item["text"]
    assert item["reason"].endswith("in a linked project")
    found = await _recall(stack, project=None, session=session)
    assert [hit["linked"] for hit in found if hit["content"] == REFUNDS] == [True]


async def test_a_discoverable_project_is_named_and_counted_without_its_text(stack: Stack) -> None:
    await _shop_and_payments(stack, discoverable=True)
    everything = (await stack.post("/v1/recall/projects", {"query": QUESTION}))["items"]
    assert everything[0]["project"] == "payments"
    assert everything[0]["readable"]
    assert everything[0]["linked_to"] == ["shop"]
    key = _reader_of(stack, "shop")
    told = await stack.call("POST", "/v1/recall/projects", {"query": QUESTION}, key)
    [payments] = [item for item in told.body["items"] if item["project"] == "payments"]
    assert payments == {**everything[0], "readable": False, "relevance": None}
    assert "4711" not in str(told.body)
    assert "lamps" not in str(told.body)
    links = (await stack.get("/v1/projects/shop/links", key=key))["items"]
    assert links == [
        {"project": "shop", "linked": "payments", "discoverable": True, "readable": False}
    ]
    hits = await _recall(stack, key)
    assert {hit["scope"] for hit in hits} == {"project/shop"}
    # A grant of one topic shows that topic alone.
    scopes = ("project/shop/*", "project/payments/topic/*")
    topic_key = stack.key_of(reads=scopes, writes=scopes, role=KeyRole.WRITER)
    found = {hit["scope"] for hit in await _recall(stack, topic_key)}
    assert found == {"project/shop", "project/payments/topic/ledger"}


async def test_a_project_is_not_named_to_who_may_not_know_of_it(stack: Stack) -> None:
    await _shop_and_payments(stack)
    key = _reader_of(stack, "shop")
    told = await stack.post("/v1/recall/projects", {"query": QUESTION}, key=key)
    assert "payments" not in str(told)
    assert (await stack.get("/v1/projects/shop/links", key=key))["items"] == []
    exported = (await stack.call("GET", "/v1/export", key=key)).body
    assert "payments" not in exported
    refused = await stack.call("GET", "/v1/projects/payments/links", key=key)
    assert refused.status == 403


async def test_only_who_may_write_both_projects_links_them_and_either_ends_it(
    stack: Stack,
) -> None:
    path = "/v1/projects/shop/links/payments"
    of_shop, of_payments = _reader_of(stack, "shop"), _reader_of(stack, "payments")
    for key in (of_shop, of_payments):
        assert (await stack.call("PUT", path, {}, key)).status == 403
    itself = await stack.call("PUT", "/v1/projects/shop/links/shop", {})
    assert (itself.status, itself.body["field"]) == (422, "linked")
    assert (await stack.call("PUT", path, {}, _reader_of(stack, "shop", "payments"))).status == 200
    assert (await stack.call("DELETE", path, key=_reader_of(stack, "lamps"))).status == 403
    assert (await stack.call("DELETE", path, key=of_payments)).status == 200
    assert (await stack.call("DELETE", path, key=of_shop)).status == 404


async def test_a_link_moves_with_an_export_and_ends_with_its_project(stack: Stack) -> None:
    stack, other = stack.apart(), stack.apart()
    await _shop_and_payments(stack, discoverable=True)
    exported = (await stack.call("GET", "/v1/export")).body
    headers = {"Content-Type": "application/x-ndjson"}
    reply = await other.call("POST", "/v1/import", data=exported.encode(), headers=headers)
    assert (reply.status, reply.body["rejected"]) == (200, 0)
    links = (await other.get("/v1/projects/payments/links"))["items"]
    assert [(link["linked"], link["discoverable"]) for link in links] == [("shop", True)]
    assert (await stack.call("DELETE", "/v1/admin/projects/payments")).status == 200
    assert (await stack.get("/v1/projects/shop/links"))["items"] == []
    await stack.post("/v1/remember", {"content": "Made anew.", "scope": "project/payments"})
    assert (await stack.get("/v1/projects/payments/links"))["items"] == []
