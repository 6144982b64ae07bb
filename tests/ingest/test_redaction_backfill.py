"""The redaction of stored texts when a service stops meanwhile."""

from __future__ import annotations

import asyncio

from reverie.domain.core.errors import Unavailable
from reverie.domain.redaction.redactor import Redactor
from reverie.store.vault.redaction_backfill import RedactionBackfillStore
from reverie_services.ingest.dependencies import RedactionBackfillDependencies
from reverie_services.ingest.redaction_backfill import LEASE_SECONDS, run_redaction_backfill
from tests.support.store_setup import Store, admin_rows, new, write


async def test_a_service_that_stops_leaves_its_run_to_the_next(store: Store) -> None:
    await write(store, new("it was told before"))
    admin_rows(
        store.admin_url,
        "insert into vault_epoch (tenant, requested, due) values (%s, now(), now())"
        " on conflict (tenant) do update set requested = now(), due = now(), finished = null"
        " returning 1",
        store.me.tenant,
    )
    begun = asyncio.Event()

    async def load_redactor(_: int) -> Redactor:
        begun.set()
        await asyncio.Event().wait()
        raise Unavailable("the vault", "nobody waits for it")

    backfill = RedactionBackfillStore(store.db)
    work = run_redaction_backfill(RedactionBackfillDependencies(backfill, load_redactor, 0.0))
    stopped = asyncio.create_task(work)
    async with asyncio.timeout(60):
        await begun.wait()
    assert await backfill.claim(LEASE_SECONDS) is None
    stopped.cancel()
    await asyncio.wait({stopped})
    assert stopped.cancelled()
    again = await backfill.claim(LEASE_SECONDS)
    assert again is not None
    assert again.tenant == store.me.tenant
