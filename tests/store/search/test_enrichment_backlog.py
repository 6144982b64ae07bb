"""What waits for enrichment is counted for who may read it, up to a limit."""

from __future__ import annotations

from reverie.domain.access.principals import Principal
from reverie.store.search.embedding_models import EmbeddingModelStore, EnrichmentBacklog
from tests.support.store_setup import Store, admin_rows, new, principal, write

OLDEST = "select min(updated) from memory where tenant = %s and scope = %s"


def _reader(store: Store, *scopes: str) -> Principal:
    return principal(store.me.tenant, "one", reads=scopes)


async def test_what_waits_is_counted_in_readable_scopes_up_to_the_limit(store: Store) -> None:
    models, scope = EmbeddingModelStore(store.db), "project/harbour"
    none = EnrichmentBacklog(0, None)
    assert await models.find_backlog(store.me, 10) == none
    for number in range(3):
        await write(store, new(f"The sluice opens at {number}.", scope=scope))
    [(since,)] = admin_rows(store.admin_url, OLDEST, store.me.tenant, scope)
    assert await models.find_backlog(store.me, 10) == EnrichmentBacklog(3, since)
    assert await models.find_backlog(store.me, 2) == EnrichmentBacklog(2, since)
    assert await models.find_backlog(_reader(store, scope), 10) == EnrichmentBacklog(3, since)
    assert await models.find_backlog(_reader(store, "project/mill"), 10) == none
    admin_rows(
        store.admin_url,
        "update memory set enriched_version = version where tenant = %s returning 1",
        store.me.tenant,
    )
    assert await models.find_backlog(store.me, 10) == none
