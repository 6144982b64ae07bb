"""The closed list of SQL functions that cross tenants, and what each one shows."""

from __future__ import annotations

import base64
import hashlib
import json
from uuid import UUID, uuid4

import asyncpg
import psycopg
import pytest

from reverie.contracts.events import dream_subject
from reverie.contracts.memories.git import GitChange
from reverie.domain.access.principals import Principal
from reverie.domain.core.consistency import IdempotencyClaim
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id
from reverie.domain.extraction.dream_log import DreamThresholds
from reverie.store.db.encryption import create_cipher
from reverie.store.db.idempotency import IdempotencyTable
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.memories.forgetting import ForgettingStore
from reverie.store.platform.api_keys import (
    ApiKeyStore,
    NewApiKey,
    create_key,
    list_keys,
    revoke_key,
)
from reverie.store.platform.leader_lock import LeaderLock
from reverie.store.platform.outbox import OutboxTable
from reverie.store.platform.webhooks import WebhookStore
from reverie.store.sessions.dream_queue import DreamQueue, DueScope
from reverie.store.sessions.sessions import SessionStore, TurnToAppend
from reverie.store.staleness.git_changes import GitChangeStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import Store, admin_rows, app_connection, new, principal, write

ACROSS = {
    "delete_old_rows(text,interval)",
    "delete_expired_documents(integer)",
    "changes_unprocessed(interval,integer)",
    *("dream_claim(text,interval)", "dream_queue()"),
    *("dreams_overdue(interval,integer)", "due_dreams(jsonb,integer)"),
    *("engine_renew(integer[],uuid[],bigint[],interval)", "engine_sweep(interval,integer)"),
    "find_key(bytea)",
    "forgotten_due(interval,integer)",
    "webhook_find(text,text,text)",
    "enrichment_overdue(interval,integer)",
    "models_in_use(integer)",
    *("outbox_age()", "outbox_claim(integer,interval)", "outbox_done(uuid[])"),
    "ranks_due(integer)",
    "redaction_claim(interval)",
    "retire_key_text()",
    *("tenant_find(text)", "tenant_delete(integer)"),
    "set_tenant_limits(integer,jsonb)",
    "tenant_names()",
    "maintenance_claim(interval,interval)",
    "maintenance_release(integer,bigint,interval)",
    "maintenance_renew(integer,bigint,interval)",
    "maintenance_is_due(interval)",
    "work_backlog()",
}
FOR_OPERATORS = {"set_tenant_limits(integer,jsonb)", "tenant_names()"}
READ = {
    "api_key", "dream_run", "edge_change", "git_event", "webhook", "memory", "project_setting",
    "session", "work_failure",
}  # fmt: skip
CHANGED = {
    "audit", "document", "dream_decision", "dream_job", "idempotency", "memory_change", "outbox",
    "recall_trace", "tenant", "vault_epoch", "vault_retired", "engine_chain", "engine_effect",
    "engine_spend", "engine_turn",
}  # fmt: skip


def _functions(database: DatabaseUrls, condition: str) -> set[str]:
    found = admin_rows(
        database.admin_url,
        "select replace(p.oid::regprocedure::text, 'reverie.', '') from pg_proc p"
        f" where p.pronamespace = 'reverie'::regnamespace and {condition}",
    )
    return {row[0] for row in found}


def test_the_functions_that_cross_tenants_are_a_closed_list_of_the_system_role(
    shared_database: DatabaseUrls,
) -> None:
    assert _functions(shared_database, "p.prosecdef") == ACROSS
    sound = (
        "pg_get_userbyid(p.proowner) = 'reverie_system'"
        " and p.proconfig = array['search_path=pg_catalog, reverie, pg_temp']"
    )
    assert _functions(shared_database, sound) == ACROSS


def test_only_the_services_may_call_them(shared_database: DatabaseUrls) -> None:
    granted = admin_rows(
        shared_database.admin_url,
        "select replace(p.oid::regprocedure::text, 'reverie.', ''),"
        " array_agg(coalesce(r.rolname, 'public')::text order by 1)"
        " from pg_proc p cross join lateral aclexplode(p.proacl) g"
        " left join pg_roles r on r.oid = g.grantee"
        " where p.pronamespace = 'reverie'::regnamespace and p.prosecdef"
        " and g.grantee <> p.proowner and r.rolname is distinct from current_user group by p.oid",
    )
    assert dict(granted) == {name: ["reverie_app"] for name in ACROSS - FOR_OPERATORS}


def test_the_system_role_sees_only_the_tables_that_they_need(shared_database: DatabaseUrls) -> None:
    found = admin_rows(
        shared_database.admin_url,
        "select c.relname, string_agg(g.privilege_type, ' ' order by 1) from pg_class c"
        " cross join lateral aclexplode(c.relacl) g"
        " where c.relnamespace = 'reverie'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')"
        " and g.grantee = 'reverie_system'::regrole group by 1",
    )
    rights = {table: set(privileges.split()) for table, privileges in found}
    assert set(rights) == READ | CHANGED | {"retired_key"}
    assert all(rights[table] == {"SELECT"} for table in READ)
    assert rights["retired_key"] == {"SELECT", "INSERT"}
    assert rights["tenant"] == {"SELECT", "UPDATE", "DELETE"}
    updated = {"vault_epoch", "engine_chain", "engine_turn"}
    assert all(rights[table] == {"SELECT", "UPDATE"} for table in updated)
    swept = {"dream_decision", "audit", "memory_change", "vault_retired"}
    swept |= {"engine_effect", "engine_spend", "document"}
    assert all(rights[table] == {"SELECT", "DELETE"} for table in swept)
    # The end of a turn that expired is announced.
    assert rights["outbox"] == {"SELECT", "INSERT", "UPDATE", "DELETE"}
    others = CHANGED - {"tenant", "outbox"} - updated - swept
    assert all(rights[table] == {"SELECT", "UPDATE", "DELETE"} for table in others)


def test_policies_over_all_tenants_are_only_for_the_system_role(
    shared_database: DatabaseUrls,
) -> None:
    found = admin_rows(
        shared_database.admin_url,
        "select tablename, array_to_string(roles, ' '), cmd from pg_policies"
        " where schemaname = 'reverie' and qual = 'true'",
    )
    wide = {table: (roles, command) for table, roles, command in found}
    assert set(wide) == READ | CHANGED | {"retired_key"}
    assert {roles for roles, _ in wide.values()} == {"reverie_system"}
    assert all(wide[table][1] == "SELECT" for table in READ)


async def test_a_tenant_can_only_be_deleted_by_itself(store: Store) -> None:
    names = "select name from tenant_names() order by 1"
    async with app_connection(store.service_url, store.me.tenant) as connection:
        await connection.fetch("select tenant_delete($1)", store.other.tenant)
        assert admin_rows(store.admin_url, names) == [("one",), ("two",)]
        await connection.fetch("select tenant_delete($1)", store.me.tenant)
    assert admin_rows(store.admin_url, names) == [("two",)]


async def test_operators_can_list_the_names_of_tenants_and_services_cannot(store: Store) -> None:
    names = admin_rows(store.admin_url, "select name from tenant_names() order by 1")
    assert names == [("one",), ("two",)]
    async with app_connection(store.service_url, store.me.tenant) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="tenant_names"):
            await connection.execute("select * from tenant_names()")


async def test_a_key_is_found_by_its_whole_hash_and_reveals_only_its_holder(store: Store) -> None:
    mine = create_key(store.admin_url, NewApiKey("a", tenant="one", reads=("global",), agent="ann"))
    create_key(store.admin_url, NewApiKey("b", tenant="two"))
    keys = ApiKeyStore(store.db)
    found = await keys.find(hashlib.sha256(mine.encode()).digest())
    assert isinstance(found, Principal)
    assert (found.tenant, found.tenant_name) == (store.me.tenant, "one")
    assert (found.reads, found.agent) == (("global",), "ann")
    assert await keys.find(hashlib.sha256(b"guessed").digest()) is None
    assert await keys.find(b"") is None


async def test_a_webhook_is_found_by_its_whole_address_and_its_secret_decrypts_nowhere_else(
    store: Store,
) -> None:
    hooks = WebhookStore(store.db, create_cipher(base64.b64encode(b"k" * 32).decode()))
    await hooks.put(store.me, "p", "github", "the secret")
    found = await hooks.find("one", "p", "github")
    assert found is not None
    who, secret = found
    assert (who.tenant, who.writes, secret) == (store.me.tenant, ("project/p/*",), "the secret")
    for place in (("one", "p", "gitlab"), ("one", "q", "github"), ("two", "p", "github")):
        assert await hooks.find(*place) is None
    assert await hooks.find_tenant("one") == store.me.tenant
    assert await hooks.find_tenant("One") is None
    admin_rows(store.admin_url, "update webhook set project = 'q' returning 1")
    with pytest.raises(Unavailable):
        await hooks.find("one", "q", "github")


async def test_a_revoked_or_expired_key_is_not_found(store: Store) -> None:
    keys = ApiKeyStore(store.db)
    revoked = create_key(store.admin_url, NewApiKey("revoked", tenant="one"))
    expired = create_key(store.admin_url, NewApiKey("expired", tenant="one"))
    [row] = [row for row in list_keys(store.admin_url) if row.label == "revoked"]
    revoke_key(store.admin_url, row.id)
    admin_rows(store.admin_url, "update api_key set expires_at = now() where label = 'expired'")
    for text in (revoked, expired):
        assert await keys.find(hashlib.sha256(text.encode()).digest()) is None


async def test_the_relay_claims_and_removes_events_of_all_tenants_except_fresh_ones(
    store: Store,
) -> None:
    [memory] = await write(store, new("the vault opens at noon", tags=("vault",)))
    await write(store, new("of two"), who=store.other)
    outbox = OutboxTable(store.db)
    async with outbox.claim(10, 3600) as young:
        assert young.rows == []
    async with outbox.claim(10, 0) as claim:
        assert "vault" not in claim.rows[0].model_dump_json(), "an event holds ids and no content"
        assert str(memory) in claim.rows[0].payload
        subjects = [row.subject for row in claim.rows]
        assert subjects == ["memory.one.remembered", "memory.two.remembered"]
        await claim.done([claim.rows[0].id])
    waiting, oldest = await outbox.age()
    assert waiting == 1
    assert oldest > 0
    left = admin_rows(store.admin_url, "select subject from outbox")
    assert left == [("memory.two.remembered",)]


async def test_a_writer_removes_only_events_of_its_own_tenant(store: Store) -> None:
    await write(store, new("of one"))
    await write(store, new("of two"), who=store.other)
    ids = [row[0] for row in admin_rows(store.admin_url, "select id from outbox")]
    await OutboxTable(store.db).delete(ids, store.me.tenant)
    assert admin_rows(store.admin_url, "select tenant from outbox") == [(store.other.tenant,)]


async def test_claims_queues_and_due_dreams_reveal_only_what_they_name(store: Store) -> None:
    dreams = DreamQueue(store.db)
    await dreams.request(store.me.tenant, "one", "global", "test", {})
    await dreams.request(store.other.tenant, "two", "project/p", "test", {})
    before = await dreams.load_queue_lengths()
    assert (before.queued, before.running, before.parked) == (2, 0, 0)
    assert await dreams.list_overdue(3600) == []
    lease = await dreams.claim("worker", 60)
    assert lease is not None
    assert (lease.tenant, lease.tenant_name, lease.scope) == (store.me.tenant, "one", "global")
    after = await dreams.load_queue_lengths()
    assert (after.queued, after.running, after.parked) == (1, 1, 0)
    [ticket] = await dreams.list_overdue(0)
    assert ticket.subject == dream_subject("two", "project/p")
    assert json.loads(ticket.payload)["tenant"] == store.other.tenant


async def test_memories_missed_by_enrichment_are_listed_by_id(store: Store) -> None:
    [mine] = await write(store, new("of one"))
    [other] = await write(store, new("of two"), who=store.other)
    await write(store, new("superseded", key="k"))
    enrichment = EnrichmentStore(store.db)
    assert await enrichment.list_overdue(3600) == []
    found = await enrichment.list_overdue(0)
    assert (store.me.tenant, "one", mine) in found
    assert (store.other.tenant, "two", other) in found
    admin_rows(store.admin_url, "update memory set enriched_version = version")
    assert await enrichment.list_overdue(0) == []


async def test_memories_that_always_fail_do_not_block_the_others(store: Store) -> None:
    await write(store, *(new(f"memory {n}") for n in range(8)))
    enrichment = EnrichmentStore(store.db)
    seen: set[UUID] = set()
    for _ in range(200):
        found = await enrichment.list_overdue(0, limit=5)
        assert len(found) == 5
        seen |= {memory for _, _, memory in found}
        if len(seen) == 8:
            return
    raise AssertionError("some were never named")


async def test_forgotten_memories_are_not_pending(store: Store) -> None:
    [mine] = await write(store, new("to be forgotten"))
    admin_rows(store.admin_url, "update memory set status = 'deleted' where id = %s", mine)
    due = ForgettingStore(store.db).list_due
    assert (await due(60, 9), await due(0, 9)) == ([], [(store.me.tenant, mine)])
    assert await EnrichmentStore(store.db).list_overdue(0) == []
    assert (await LeaderLock(store.db).count_backlog()).memories == 0


async def test_the_backlog_is_two_numbers_over_all_tenants(store: Store) -> None:
    await write(store, new("of one"))
    await write(store, new("of two"), who=store.other)
    await GitChangeStore(store.db).add(store.me, _change(), {})
    behind = await LeaderLock(store.db).count_backlog()
    assert (behind.memories, behind.changes) == (2, 1)


async def test_unapplied_changes_are_listed_by_id_until_applied(store: Store) -> None:
    changes = GitChangeStore(store.db)
    change, known, _ = await changes.add(store.other, _change(), {})
    stored = await changes.get(store.other.tenant, change)
    assert stored is not None
    assert (known, await changes.list_unprocessed(3600)) == (False, [])
    assert await changes.list_unprocessed(0) == [(store.other.tenant, "two", change)]
    async with StaleMarkStore(store.db).lock_project((store.other.tenant, "two"), "p") as project:
        await project.mark_processed(stored)
    assert await changes.list_unprocessed(0) == []


async def test_silent_scopes_are_listed_until_their_digest_is_requested(store: Store) -> None:
    dreams, sessions = DreamQueue(store.db), SessionStore(store.db)
    for who, scope in ((store.me, "global"), (store.other, "project/p")):
        session, _ = await sessions.start(who, new_id(), scope, {"agent": "ann"})
        await sessions.append(who, session, [TurnToAppend(new_id(), "user", "hello", "hello")])
    assert await dreams.list_due_scopes(DreamThresholds()) == []
    silent = DreamThresholds(idle_minutes=2**-20)
    both = [
        DueScope(store.me.tenant, "one", "global", "idle", 60 * 2**-20),
        DueScope(store.other.tenant, "two", "project/p", "idle", 60 * 2**-20),
    ]
    assert sorted(await dreams.list_due_scopes(silent), key=lambda one: one.scope) == both
    await dreams.request(store.me.tenant, "one", "global", "idle", {})
    assert await dreams.list_due_scopes(silent) == both[1:]


async def test_the_sweep_removes_only_old_answers_of_all_tenants(store: Store) -> None:
    table = IdempotencyTable(store.db)
    for who in (store.me, store.other):
        await table.begin(who.tenant, "old", "/r", b"b")
        await table.begin(who.tenant, "new", "/r", b"b")
    admin_rows(
        store.admin_url, "update idempotency set at = now() - interval '25 h' where key = 'old'"
    )
    assert await table.sweep() == 2
    assert admin_rows(store.admin_url, "select distinct key from idempotency") == [("new",)]


async def test_a_claim_lasts_as_long_as_the_table_is_configured(store: Store) -> None:
    patient, hasty = IdempotencyTable(store.db, 600), IdempotencyTable(store.db, 300)
    await patient.begin(store.me.tenant, "k", "/r", b"b")
    admin_rows(store.admin_url, "update idempotency set at = at - interval '400 s'")
    assert await patient.begin(store.me.tenant, "k", "/r", b"b") is IdempotencyClaim.IN_PROGRESS
    assert await hasty.begin(store.me.tenant, "k", "/r", b"b") is IdempotencyClaim.ACQUIRED


async def test_the_services_cannot_assume_the_system_role(store: Store) -> None:
    async with app_connection(store.service_url, store.me.tenant) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("set role reverie_system")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("create function reverie.mine() returns int return 1")


async def test_calls_of_one_tenant_leave_the_other_unchanged(store: Store) -> None:
    """Functions that set their own tenant take ids of another as missing."""
    [theirs] = await write(store, new("of two"), who=store.other)
    stranger = principal(store.me.tenant, "one")
    with pytest.raises(Exception, match="memory"):
        await store.memories.get(stranger, theirs)
    with psycopg.connect(store.service_url, options="-csearch_path=reverie,public") as connection:
        connection.execute("set role reverie_app")
        row = connection.execute(
            "select append_turns(%s, %s, '[]', '{}', '{*}'), has_dream_lease(%s, 'global', 1)",
            [store.me.tenant, uuid4(), store.me.tenant],
        ).fetchone()
    assert row == ({"problem": "not_found"}, False)


def _change() -> GitChange:
    return GitChange.model_validate(
        {"project": "p", "branch": "main", "before": "a" * 40, "after": "b" * 40}
        | {"commits": [{"sha": "b" * 40, "committed_at": "2025-01-01T00:00:00Z"}]}
        | {"files": [{"path": "a.py", "status": "modified"}]}
    )
