"""The redaction of stored texts when a service stops meanwhile."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id
from reverie.domain.redaction.redactor import Redactor
from reverie.store.vault.redaction_backfill import (
    BackfillRun,
    RedactedRow,
    RedactionBackfillStore,
)
from reverie_services.ingest.dependencies import RedactionBackfillDependencies
from reverie_services.ingest.redaction_backfill import LEASE_SECONDS, run_redaction_backfill
from tests.support.store_setup import Store, admin_rows, new, write
from tests.support.tables import run, value

IMAGE = """
insert into reverie.engine_image (tenant, id, group_id, scope, media_type, data)
values (%s, %s, gen_random_uuid(), 'global', 'image/png', 'x')
"""
MESSAGE = """
insert into reverie.engine_message (tenant, id, group_id, scope, author, content, images)
values (%s, %s, gen_random_uuid(), 'global', 'ann', %s, array[%s]::uuid[])
"""
SEEN = """
select md5(jsonb_build_object('content', content)::text) from reverie.engine_message where id = %s
"""
DESCRIBE = """
update reverie.engine_message set content = replace(content, 'image/png', 'image/png, a bird')
where id = %s
"""


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


@pytest.mark.parametrize("is_described", [False, True])
async def test_images_stay_where_their_message_was_described_since_it_was_read(
    store: Store, is_described: bool
) -> None:
    """The message is read again then, and redacted with its description."""
    message, image, tenant = new_id(), new_id(), store.me.tenant
    text = "The word is heron.\n\n[image: image/png]"
    run(store.admin_url, IMAGE, tenant, image)
    run(store.admin_url, MESSAGE, tenant, message, text, image)
    seen = value(store.admin_url, SEEN, message)
    if is_described:
        run(store.admin_url, DESCRIBE, message)
    now = {"content": text.replace("heron", "[REDACTED]").replace("image/png", "image/png, ?")}
    backfill = RedactionBackfillStore(store.db)
    row = RedactedRow({"id": str(message)}, seen, now, "", "")
    run_of = BackfillRun(tenant, store.me.tenant_name, datetime.now(UTC), "engine_message", None)
    assert await backfill.put(run_of, [row]) is not is_described
    left = "select count(*) from reverie.engine_image where id = %s"
    assert value(store.admin_url, left, image) == is_described
