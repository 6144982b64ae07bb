"""A language model reviews stale-marked memories, and its verdicts are decided on."""

from __future__ import annotations

from typing import Any

from reverie.store.maintenance.items import MaintenanceScope
from reverie_services.dream.dependencies import MaintenanceDependencies
from reverie_services.dream.maintenance.run_maintenance import run_maintenance
from tests.dream.language_models import open_maintenance
from tests.support.stack import Stack
from tests.support.store_setup import Store, admin_rows, new, write
from tests.support.stub_llm import StubModel, stub_llm

SHOP = "project/shop"
OLD, NOW = "Tokens are signed by `jsonwebtoken`", "Tokens are signed by `jose`"
LINES = "-import jsonwebtoken\n+import jose"


async def _doubted(store: Store, *contents: str, **fields: Any) -> list[Any]:
    """Memories of a file, each with a mark by a change of it."""
    ids = await write(store, *(new(text, scope=SHOP, **fields) for text in contents))
    tenant = store.me.tenant
    [(event,)] = admin_rows(store.admin_url, "select gen_random_uuid()")
    facts = (
        '{"path": "src/auth.ts", "commit": "abcdef1234", "hunks": [{"text": "'
        + LINES.replace("\n", "\\n")
        + '"}]}'
    )
    admin_rows(
        store.admin_url,
        "insert into git_file (tenant, event, ordinal, project, branch, main, name, at, known_at,"
        " facts) values (%s, %s, 1, 'shop', 'main', true, 'auth.ts', now(), now(), %s)",
        *(tenant, event, facts),
    )
    for one in ids:
        admin_rows(
            store.admin_url,
            "insert into stale_mark (tenant, memory, commit, path, grade, score, change, subject,"
            " committed_at, event, origin) values (%s, %s, 'abcdef1234', 'src/auth.ts', 'stale',"
            " .9, 'modified', 'Sign by jose', now(), %s, %s)",
            *(tenant, one, event, one),
        )
    return ids


def _says(stub: StubModel, **verdicts: dict[str, str]) -> None:
    """The stub answers by the first word of the memory that it is shown."""

    def answer(asked: Any) -> dict[str, str]:
        return next(said for word, said in verdicts.items() if f"\n{word} " in asked.text)

    stub.answer = answer


async def _review(store: Store, parts: MaintenanceDependencies) -> int:
    work = await run_maintenance(parts, MaintenanceScope(store.me.tenant, "one"))
    return work.counts.get("reviewed", 0)


async def test_a_models_review_of_a_stale_memory_waits_for_approval(store: Store) -> None:
    async with stub_llm() as (stub, url):
        held, changed, gone, unsure, hostile = await _doubted(
            store, "Holds by itself", OLD, "Gone with its file", "Unsure what it is", "Hostile one"
        )
        _says(
            stub,
            Holds={"verdict": "holds", "why": "only an import changed"},
            Tokens={"verdict": "changed", "content": NOW, "why": "jose is imported instead"},
            Gone={"verdict": "gone", "why": "it is no more"},
            Unsure={"verdict": "unsure", "why": "nothing shows"},
            Hostile={"verdict": "changed", "content": "Deploy to 10.9.8.7 on Fridays", "why": "x"},
        )
        async with open_maintenance(store, url, review_mode="propose") as parts:
            assert await _review(store, parts) == 5
            assert await _review(store, parts) == 0
            shown = next(one.text for one in stub.asked if "Tokens" in one.text)
            assert LINES in shown
            assert "Sign by jose" in shown
            page = {r.memory: r for r in await parts.reviews.page(store.me, "open", None, 10)}
            assert {one: page[one].verdict for one in page} == {
                held: "holds", changed: "changed", gone: "gone"
            }  # fmt: skip
            assert page[changed].content == NOW
            assert page[changed].generated_by == "review/1 stub"
            closed = await parts.reviews.page(store.me, "rejected", None, 10)
            assert {one.memory for one in closed} == {unsure, hostile}
            for one in (held, changed, gone):
                await parts.reviews.accept(store.me, page[one].id, {})
            rows = admin_rows(store.admin_url, "select id, content, status from memory")
            stands = {row[0]: row[1:] for row in rows}
            assert stands[held] == ("Holds by itself", "active")
            assert stands[changed] == (NOW, "active")
            assert stands[gone] == ("Gone with its file", "archived")
            marked = "select memory from stale_mark where cleared is null order by 1"
            open_marks = {row[0] for row in admin_rows(store.admin_url, marked)}
            assert open_marks & {held, changed} == set()
            assert {unsure, hostile} <= open_marks
            assert await parts.reviews.page(store.me, "open", None, 10) == []


async def test_with_automatic_reviews_a_verdict_is_applied_at_once(store: Store) -> None:
    async with stub_llm() as (stub, url):
        [changed] = await _doubted(store, OLD)
        _says(stub, Tokens={"verdict": "changed", "content": NOW, "why": "jose is imported"})
        async with open_maintenance(store, url, review_mode="apply") as parts:
            assert await _review(store, parts) == 1
            [(content, version)] = admin_rows(
                store.admin_url, "select content, version from memory where id = %s", changed
            )
            assert (content, version) == (NOW, 2)
            [(why,)] = admin_rows(
                store.admin_url, "select reason from memory_version where memory = %s", changed
            )
            assert why == "review/1 stub looked it over: jose is imported"
            assert await _review(store, parts) == 0


async def test_a_new_text_by_a_review_takes_the_parts_of_the_old_record_along(store: Store) -> None:
    record = {"problem": "Sessions end too early.", "decided": [OLD]}
    async with stub_llm() as (stub, url):
        [changed] = await _doubted(store, OLD, metadata={"record": record, "note": "kept"})
        _says(stub, Tokens={"verdict": "changed", "content": NOW, "why": "jose is imported"})
        async with open_maintenance(store, url, review_mode="apply") as parts:
            assert await _review(store, parts) == 1
    shown = "select metadata, words @@ 'earli'::tsquery from memory where id = %s"
    assert admin_rows(store.admin_url, shown, changed) == [({"note": "kept"}, False)]


async def test_reviews_are_listed_and_decided_through_the_gateway(stack: Stack) -> None:
    assert (await stack.get("/v1/reviews?state=open"))["items"] == []
    missing = "00000000-0000-7000-8000-000000000001"
    for verb in ("accept", "refuse"):
        reply = await stack.call("POST", f"/v1/reviews/{missing}/{verb}")
        assert (reply.status, reply.body["code"]) == (404, "not_found")
    reply = await stack.call("GET", "/v1/reviews?state=lost")
    assert reply.status == 422
