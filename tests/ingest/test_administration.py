"""Keys, scopes, projects and dead letters, and the deletion of scopes and tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, LiteralString

import nats

from reverie.bus.dead_letters import DeadLetterOrigin, publish_dead_letter
from reverie.bus.erasure import tenant_subjects
from reverie.bus.interface import Message
from reverie.bus.nats_bus import connect
from reverie.bus.streams import STREAMS
from reverie.contracts.events import DREAM_STREAM, dream_subject
from reverie.domain.access.principals import TENANT_DELETION_PATTERN, KeyRole
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.dead_letters import bury
from tests.support.stack import Stack, eventually, running_stack
from tests.support.store_setup import Store, add_tenants, admin_rows, app_connection
from tests.support.tables import counts, rows, value

SESSION = {"agent": "ann", "project": "shop", "branch": "feat/login.v2"}


async def _fill(stack: Stack) -> dict[str, Any]:
    """Fills the tenant with a bit of everything; answers the start of its session."""
    start = await stack.post("/v1/sessions/start", SESSION)
    turn = {"role": "user", "content": "we chose jose for tokens in src/auth.ts"}
    await stack.post("/v1/turns", {"session": start["session"], "turns": [turn]})
    head = {"Idempotency-Key": "once"}
    body = {"content": "shop keeps carts in src/cart.ts", "scope": "project/shop", "key": "carts"}
    first = await stack.post("/v1/remember", body, headers=head)
    edge = [{"to": first["id"], "type": "relates_to"}]
    more = {"content": "checkout reads src/cart.ts", "scope": start["scope"], "edges": edge}
    await stack.post("/v1/remember", {**more, "tags": ["pay"], "session": start["session"]})
    await stack.post("/v1/remember", {"content": "shopping is global"})
    await stack.call("PUT", "/v1/vault/counter", {"value": 1})
    await stack.post(f"/v1/sessions/{start['session']}/end", {})
    await stack.settled()
    return dict(start)


def _count_rows(stack: Stack, tenant: int) -> dict[str, int]:
    """The tables that hold rows of a tenant, and how many."""
    return {name: n for name, n in counts(stack.admin_url, tenant).items() if n}


def _find_tables(stack: Stack, tenant: int, words: Sequence[str] = ("",)) -> list[str]:
    """The tables of which a row of the tenant says one of the words, in whatever column."""
    names = [name for (name,) in admin_rows(stack.admin_url, "select name from tenant_tables()")]
    assert len(names) > 20
    said = "select from {0} where tenant = %s and lower({0}::text) like any(%s) limit 1"
    like = [f"%{word}%" for word in words]
    return [name for name in names if admin_rows(stack.admin_url, said.format(name), tenant, like)]


async def _find_messages(nats_url: str, tenant: str, number: int) -> list[str]:
    """What lies in any stream or bucket that the server holds and speaks of a tenant."""
    client = await nats.connect(nats_url)
    try:
        js = client.jetstream()
        held = [info.config.name for info in await js.streams_info()]
        assert set(held) >= {spec.name for spec in STREAMS}
        async with connect(nats_url, "test") as bus:
            await bus.wait_connected(30)
            found = [one for name in held for one in await bus.read_page(str(name), ">", 0, 10_000)]
    finally:
        await client.close()
    mine = f'"tenant":{number},', f'"tenant":{number}}}'
    return [
        one.subject
        for one in found
        if tenant in one.subject.split(".")
        or any(said in one.data.decode().replace(" ", "") for said in mine)
    ]


def test_the_messages_of_a_tenant_are_erased_in_every_stream_that_names_tenants() -> None:
    covered = {stream for stream, _ in tenant_subjects("t")}
    assert {spec.name for spec in STREAMS} - covered == {"ADVISORY"}


async def test_deleting_a_tenant_leaves_nothing_of_it_in_any_table_or_stream(
    alone: Stack, nats_url: str
) -> None:
    one, two = alone.apart(), alone.apart()
    await _fill(one)
    await _fill(two)
    number, other = one.number(), two.number()
    async with connect(nats_url, "test") as bus:
        await bus.wait_connected(30)
        ticket = Message(dream_subject(one.tenant, "global"), b'{"scope": "global"}', {}, 1)
        await publish_dead_letter(
            bus, DeadLetterOrigin(DREAM_STREAM, "dream-workers", "1"), ticket, "broken"
        )
    assert len(await _find_messages(nats_url, one.tenant, number)) > 3
    before, of_one = _count_rows(alone, other), _count_rows(alone, number)
    wrong = await one.call("DELETE", "/v1/admin/tenant", {"confirm": two.tenant})
    assert (wrong.status, wrong.body["field"]) == (422, "confirm")
    done = await one.call("DELETE", "/v1/admin/tenant", {"confirm": one.tenant})
    assert (done.status, done.body["done"]) == (200, True), done
    # What follows in its own time is left out by `_count_rows`.
    later = {"edge_change", "memory_change", "memory_rank"}
    counted = {table: many for table, many in done.body["rows"].items() if table not in later}
    assert counted == of_one
    assert len(of_one) > 12
    assert done.body["messages"]["MEMORY"] > 0
    assert _find_tables(alone, number) == []
    assert await _find_messages(nats_url, one.tenant, number) == []
    assert _count_rows(alone, other) == before
    assert await _find_messages(nats_url, two.tenant, other) != []
    assert (await one.call("POST", "/v1/remember", {"content": "x"})).status == 401


async def test_deleting_a_tenant_finishes_although_its_key_keeps_writing(stack: Stack) -> None:
    number = stack.number()
    kept: list[int] = []

    async def write(writer: int) -> int:
        while True:
            body = {"content": f"The writer {writer} says {len(kept)}"}
            answer = await stack.call("POST", "/v1/remember", body)
            if answer.status != 201:
                return answer.status
            kept.append(writer)

    async def busy() -> bool:
        return len(set(kept)) == 3

    writers = [asyncio.create_task(write(writer)) for writer in range(3)]
    await eventually(busy)
    done = await stack.call("DELETE", "/v1/admin/tenant", {"confirm": stack.tenant})
    assert (done.status, done.body["done"]) == (200, True), done
    assert set(await asyncio.gather(*writers)) <= {401, 403}
    assert _find_tables(stack, number) == []


async def test_a_deletion_that_was_broken_off_can_be_finished(stack: Stack) -> None:
    number = stack.number()
    broken_off = "update api_key set writes = %s where tenant = %s"
    admin_rows(stack.admin_url, broken_off, [TENANT_DELETION_PATTERN], number)
    assert (await stack.call("POST", "/v1/remember", {"content": "x"})).status == 403
    confirmed = {"confirm": stack.tenant}
    assert (await stack.call("DELETE", "/v1/admin/tenant", confirmed)).body["done"]
    assert _find_tables(stack, number) == []


async def test_a_cached_key_cannot_write_into_a_deleted_tenant(
    database: DatabaseUrls, nats_url: str
) -> None:
    late = [
        ("/v1/remember", {"content": "late", "key": "late"}),
        ("/v1/sessions/start", SESSION),
        ("/v1/dream", {}),
    ]
    async with running_stack(database, nats_url, model_home(), key_cache_ttl=600) as stack:
        for path, body in late:
            await stack.post(path, body)
        number = stack.number()
        await stack.call("DELETE", "/v1/admin/tenant", {"confirm": stack.tenant})
        statuses = [(await stack.call("POST", path, body)).status for path, body in late]
        assert statuses == [401, 401, 401]
        assert _find_tables(stack, number) == []


async def test_rows_written_during_a_deletion_are_deleted_too(shared_store: Store) -> None:
    url, tenant = shared_store.admin_url, shared_store.me.tenant
    admin_rows(
        url,
        "insert into vault (tenant, scope, key, sealed, secret, key_id, actor)"
        " values (%s, 'global', 'k', 'x', true, 'k', 'w')",
        tenant,
    )
    admin_rows(url, "delete from vault_epoch where tenant = %s", tenant)
    admin_rows(url, "delete from tenant where id = %s", tenant)
    async with app_connection(shared_store.service_url) as connection:
        sweep = "select tenant_delete_batch($1, $2, 10)"
        assert await connection.fetchval(sweep, tenant, "vault") == 1
        assert await connection.fetchval(sweep, tenant, "vault_epoch") == 1


async def test_deleting_a_scope_removes_everything_of_it_and_reports_the_counts(
    stack: Stack,
) -> None:
    started = await _fill(stack)
    found = await stack.get("/v1/admin/scopes")
    scopes = {one["scope"]: one for one in found["items"]}
    assert {"global", "project/shop", started["scope"]} <= set(scopes)
    assert scopes["global"]["statuses"] == {"active": 1}
    assert scopes[started["scope"]]["sessions"] == 1
    [project] = (await stack.get("/v1/admin/projects"))["items"]
    assert (project["project"], project["sessions"]) == ("shop", 1)
    session, number = started["session"], stack.number()
    await stack.post("/v1/recall", {"query": "shopping", "session": session})

    async def is_use_counted() -> bool:
        query: LiteralString = "select count(*) from memory_use_session where used_by = %s"
        return bool(value(stack.admin_url, query, f"session {session}"))

    await eventually(is_use_counted)
    listed = (await stack.get("/v1/memories?limit=200"))["items"]
    going = [session, *(one["id"] for one in listed if one["scope"] != "global")]
    only = await stack.call("DELETE", "/v1/admin/scopes?scope=project/shop")
    assert only.body["rows"]["memory"] >= 1
    left = await stack.get("/v1/admin/scopes")
    assert {one["scope"] for one in left["items"]} == {"global", started["scope"]}
    done = await stack.call("DELETE", "/v1/admin/projects/shop")
    assert done.body["rows"]["turn"] == 1
    assert done.body["rows"]["session"] == 1
    assert (await stack.get("/v1/admin/projects"))["items"] == []
    assert len(going) > 2
    # Gateways are told of the deletion for two hours.
    assert _find_tables(stack, number, going) == ["memory_change"]
    left_over = _count_rows(stack, number)
    kept = {"api_key", "tenant", "memory", "session_utterance", "posting_entry", "chunk", "outbox"}
    kept |= {"memory_use", "vault"}
    assert {name for name in left_over if not name.startswith(("vec_", "sparse_"))} <= kept
    assert (left_over["memory"], left_over.get("session_utterance", 1)) == (1, 1)
    found = await stack.post("/v1/recall", {"query": "cart shopping"})
    assert [one["scope"] for one in found["memories"]] == ["global"]


async def test_keys_are_created_listed_and_revoked_in_a_tenant_and_grant_no_more_than_their_creator(
    stack: Stack,
) -> None:
    grants = ["project/a/*"]
    boss = stack.key_of(role=KeyRole.ADMIN, reads=grants, writes=grants)
    writer, foreign = stack.key_of(role=KeyRole.WRITER, reads=grants), stack.apart().key
    narrow = {"reads": ["project/a/feature/x"], "writes": ["project/a"]}
    body = {"label": "ci", "agent": "Bot", **narrow}
    made = await stack.post("/v1/admin/keys", body, key=boss)
    listed = (await stack.get("/v1/admin/keys", key=boss))["items"]
    assert [one["label"] for one in listed][-1] == "ci"
    assert made["key"] not in str(listed)
    assert (listed[-1]["agent"], listed[-1]["role"]) == (made["agent"], "writer")
    assert (await stack.call("GET", "/v1/context", key=made["key"])).status == 200
    for wider in ({"reads": ["*"]}, {"writes": ["project/b"]}, {"reads": ["project/*"]}):
        refused = await stack.call("POST", "/v1/admin/keys", {**body, **wider}, boss)
        assert refused.status == 403, wider
    bad = await stack.call("POST", "/v1/admin/keys", {**body, "reads": ["no/where"]}, boss)
    assert (bad.status, bad.body["field"]) == (422, "reads")
    assert (await stack.call("GET", "/v1/admin/keys", key=writer)).status == 403
    ended = f"/v1/admin/keys/{made['id']}"
    assert (await stack.call("DELETE", ended, key=foreign)).status == 404
    assert (await stack.call("DELETE", ended, key=boss)).status == 200
    assert (await stack.call("GET", "/v1/context", key=made["key"])).status == 401
    walked = await stack.walked("/v1/admin/keys", key=boss)
    assert [one["id"] for one in walked] == [one["id"] for one in listed]


def test_every_table_declares_how_it_loses_the_rows_of_a_scope(
    shared_database: DatabaseUrls,
) -> None:
    """A table that fails here needs a column `scope`, ids of what it belongs to, a column
    `project`, or a line in `erase_strategy` or `number_references`."""
    ways = dict(
        admin_rows(shared_database.admin_url, "select name, strategy from erase_strategy()")
    )
    assert {name for name, way in ways.items() if way is None} == set()
    assert (ways["edge"], ways["posting_entry"], ways["git_event"]) == ("ids", "number", "project")


IT = "00000000-0000-7000-8000-000000000001"


def test_no_id_column_still_names_a_memory_of_a_deleted_scope(database: DatabaseUrls) -> None:
    """One memory is named in every column of ids of every table, then its scope is deleted."""
    url = database.admin_url
    [tenant] = add_tenants(url, "one")
    admin_rows(
        url,
        "insert into memory (tenant, id, scope, kind, tier, content, hash, words, terms,"
        " confidence, source) values"
        " (%s, %s, 'project/p', 'context', 'warm', 'x', 'x', '', 0, 1, 'test')",
        *(tenant, IT),
    )
    columns = rows(
        url,
        "select name, col, type from table_columns() where type in ('uuid', 'uuid[]')"
        " and col <> 'id' and name in ("
        "select name from erase_strategy() where strategy in ('ids', 'project'))",
    )
    for table, col, kind in columns:
        _name_it(url, tenant, table, col, kind)
    delete = "select from scope_delete_batch(%s, '{project/p}', null, 10) where gone > 0"
    while admin_rows(url, delete, tenant):
        pass
    is_it = {"uuid": "{} = %s::uuid", "uuid[]": "%s::uuid = any({})"}
    left = [
        f"{table}.{col}"
        for table, col, kind in columns
        if admin_rows(url, f"select from {table} where {is_it[kind].format(col)}", IT)
    ]
    assert left == []


def _name_it(admin_url: str, tenant: int, table: str, col: str, kind: str) -> None:
    """A row of the table that names the memory in this column; all else is made up, unchecked."""
    needed = admin_rows(
        admin_url,
        "select a.attname, a.atttypid::regtype::text from pg_attribute a"
        " where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped"
        " and a.attnotnull and not a.atthasdef and a.attidentity = ''",
        table,
    )
    named = {name: MADE_UP.get(kind_of, "''") for name, kind_of in needed}
    named["tenant"] = str(tenant)
    named[col] = f"'{IT}'" if kind == "uuid" else f"array['{IT}'::uuid]"
    columns, values = ", ".join(named), ", ".join(named.values())
    for (check,) in admin_rows(
        admin_url,
        "select conname from pg_constraint where conrelid = %s::regclass and contype = 'c'"
        " and conislocal",
        table,
    ):
        admin_rows(admin_url, f'alter table {table} drop constraint "{check}"')
    admin_rows(admin_url, f"insert into {table} ({columns}) values ({values})")


MADE_UP = {
    "uuid": "gen_random_uuid()",
    "uuid[]": "'{}'",
    **dict.fromkeys(("text[]", "integer[]", "real[]"), "'{}'"),
    "jsonb": "'{}'",
    "bytea": "'x'",
    "tsvector": "''",
    "timestamp with time zone": "now()",
    "boolean": "false",
    "text": "gen_random_uuid()::text",
    **dict.fromkeys(("integer", "bigint", "smallint"), "(random() * 30000)::int"),
    **dict.fromkeys(("real", "double precision"), "0.5"),
}


LETTERS = "/v1/admin/dead-letters"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


async def test_a_letter_is_listed_read_and_sent_again_once(stack: Stack) -> None:
    first, second = await bury(stack, "no such scope"), await bury(stack)
    listed = await stack.get(f"{LETTERS}?limit=1")
    [letter] = listed["items"]
    assert (letter["seq"], letter["reason"], letter["deliveries"]) == (first, "no such scope", 5)
    rest = await stack.get(f"{LETTERS}?limit=1&cursor={listed['next']}")
    assert ([each["seq"] for each in rest["items"]], rest.get("next")) == ([second], None)
    assert (await stack.get(f"{LETTERS}/{first}"))["data"] == "{}"
    assert await stack.post(f"{LETTERS}/{first}/replay", None) == {"replayed": 1}
    assert (await stack.call("POST", f"{LETTERS}/{first}/replay")).status == 404
    for number in ("0", "-1", "x", "99999999999999999999", "1.5"):
        assert (await stack.call("GET", f"{LETTERS}/{number}")).status == 422, number
    assert [each["seq"] for each in (await stack.get(LETTERS))["items"]] == [second]


async def test_only_an_administrator_of_all_scopes_of_the_tenant_sees_and_sends_a_letter(
    stack: Stack,
) -> None:
    number = await bury(stack)
    shop = ["project/shop"]
    keys = [(stack.key_of(role=role), 403) for role in KeyRole if role is not KeyRole.ADMIN]
    keys += [(stack.key_of(role=KeyRole.ADMIN, reads=shop, writes=shop), 403)]
    other = stack.apart().key
    for key, status in (*keys, (other, 404)):
        for method, path in (("GET", f"/{number}"), ("POST", f"/{number}/replay")):
            assert (await stack.call(method, LETTERS + path, key=key)).status == status
        if status == 403:
            assert (await stack.call("GET", LETTERS, key=key)).status == 403
    assert (await stack.get(LETTERS, key=other))["items"] == []
    assert [each["seq"] for each in (await stack.get(LETTERS))["items"]] == [number]


async def test_a_letter_shows_no_credential(stack: Stack) -> None:
    number = await bury(stack, f"refused {SECRET}", f'{{"token": "{SECRET}"}}'.encode())
    answers = [await stack.get(LETTERS), await stack.get(f"{LETTERS}/{number}")]
    assert SECRET not in str(answers)
    assert "REDACTED" in answers[1]["data"]
