"""One dream worker: redaction of new secrets, parked scopes, lost leases."""

from __future__ import annotations

from unittest.mock import AsyncMock

from reverie.bus.interface import MessageBus
from reverie.bus.outbox_relay import EventPublisher
from reverie.domain.core.ids import new_id
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.redaction.vault_secrets import SecretMatcher, VaultSecret
from reverie.store.maintenance.maintenance import MaintenanceStore
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.platform.outbox import OutboxTable
from reverie.store.search.ranking_signals import RankStore
from reverie.store.sessions.dream_queue import DreamQueue
from reverie.store.sessions.dream_runs import DreamRunStore
from reverie.store.sessions.sessions import SessionStore, TurnToAppend
from reverie.store.sessions.summaries import SummaryStore
from reverie.store.staleness.reviews import ReviewStore
from reverie_services.dream.dependencies import DigestDependencies, MaintenanceDependencies
from reverie_services.dream.digest.run_dream import run_dream
from reverie_services.dream.settings import DreamSettings
from tests.support.store_setup import Store, admin_rows

HOUR = 3600.0


async def _known(_: int) -> Redactor:
    """A secret that came into the vault after the turns did."""
    return Redactor(SecretMatcher([VaultSecret("global", "till", "tulip-7fQ2x-kV9rTz4")]))


def dream_parts(store: Store) -> DigestDependencies:
    return DigestDependencies(
        settings=DreamSettings("worker", lease_seconds=HOUR, max_attempts=3),
        dreams=DreamQueue(store.db),
        dream_runs=DreamRunStore(store.db),
        summaries=SummaryStore(store.db),
        duplicates=DuplicateStore(store.db),
        publisher=EventPublisher(AsyncMock(spec=MessageBus), OutboxTable(store.db)),
        load_redactor=_known,
    )


def maintenance_parts(store: Store) -> MaintenanceDependencies:
    return MaintenanceDependencies(
        settings=DreamSettings("worker", lease_seconds=HOUR, max_attempts=3),
        maintenance=MaintenanceStore(store.db),
        duplicates=DuplicateStore(store.db),
        reviews=ReviewStore(store.db),
        ranks=RankStore(store.db),
        publisher=EventPublisher(AsyncMock(spec=MessageBus), OutboxTable(store.db)),
        load_redactor=_known,
    )


async def _waiting(
    store: Store, parts: DigestDependencies, said: str = "We decided to keep money in cents."
) -> None:
    """A session with a turn to digest, and a request for it."""
    session, scope = await SessionStore(store.db).start(
        store.me, new_id(), "global", {"agent": "ann"}
    )
    turn = TurnToAppend(new_id(), "user", said, "money cents")
    await SessionStore(store.db).append(store.me, session, [turn])
    await parts.dreams.request(store.me.tenant, "one", scope, "asked", {})


async def test_a_digest_redacts_secrets_that_the_vault_learned_since(store: Store) -> None:
    parts = dream_parts(store)
    said = "We decided to open the till with tulip-7fQ2x-kV9rTz4."
    await _waiting(store, parts, said)
    lease = await parts.dreams.claim("worker", HOUR)
    assert lease is not None
    assert await run_dream(parts, lease) == "done"
    made = admin_rows(store.admin_url, "select content from memory where source = 'dream'")
    assert made
    kept = admin_rows(store.admin_url, "select content from summary") + made
    assert "tulip-7fQ2x-kV9rTz4" not in str(kept)
    assert "[REDACTED_VAULT]" in str(made)


async def test_a_scope_that_kills_its_workers_is_parked_and_reported(store: Store) -> None:
    parts = dream_parts(store)
    await _waiting(store, parts)
    for _ in range(3):
        assert await parts.dreams.claim("doomed", HOUR) is not None
        admin_rows(store.admin_url, "update dream_job set lease_until = now() - interval '1 s'")
    last = await parts.dreams.claim("careful", HOUR)
    assert last is not None
    assert await run_dream(parts, last) == "parked"
    [run] = await parts.dream_runs.list_runs(store.me, None, "global", 10)
    assert (run.status, run.error, run.turns) == ("failed", "DigestAttemptsExhausted", 0)
    assert await parts.dreams.claim("next", HOUR) is None


async def test_a_worker_whose_lease_was_taken_over_writes_nothing(store: Store) -> None:
    parts = dream_parts(store)
    await _waiting(store, parts)
    slow = await parts.dreams.claim("slow", HOUR)
    assert slow is not None
    admin_rows(store.admin_url, "update dream_job set lease_until = now() - interval '1 s'")
    fresh = await parts.dreams.claim("fresh", HOUR)
    assert fresh is not None
    assert await run_dream(parts, slow) == "lost"
    assert await parts.dream_runs.list_runs(store.me, None, "global", 10) == []
    assert await run_dream(parts, fresh) == "done"
    [run] = await parts.dream_runs.list_runs(store.me, None, "global", 10)
    assert (run.status, run.turns) == ("done", 1)
