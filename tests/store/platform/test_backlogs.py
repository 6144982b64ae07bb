"""Git changes and memories that wait are counted for who may read them."""

from __future__ import annotations

from reverie.contracts.memories.git import GitChange
from reverie.domain.access.principals import Principal
from reverie.store.search.embedding_models import EmbeddingModelStore, EnrichmentBacklog
from reverie.store.staleness.git_changes import ChangeBacklog, GitChangeStore
from tests.support.store_setup import Store, admin_rows, new, principal, write

RECEIVED = "select min(received) from git_event where tenant = %s and project = 'harbour'"


async def test_changes_that_wait_are_counted_by_readable_project(shared_store: Store) -> None:
    store = shared_store
    changes, none = GitChangeStore(store.db), ChangeBacklog(0, None)
    assert await changes.find_backlog(store.me, ["*"]) == none
    for project, letter in (("harbour", "a"), ("harbour", "b"), ("mill", "c")):
        body = {"project": project, "branch": "main", "after": letter * 40}
        change = GitChange.model_validate({**body, "files": [{"path": "a.py", "status": "added"}]})
        await changes.add(store.me, change, {})
    [(since,)] = admin_rows(store.admin_url, RECEIVED, store.me.tenant)
    assert (await changes.find_backlog(store.me, ["*"])).waiting == 3
    of_harbour = ["project/harbour", "project/harbour/*"]
    assert await changes.find_backlog(store.me, of_harbour) == ChangeBacklog(2, since)
    assert await changes.find_backlog(store.me, ["project/quay"]) == none
    assert await changes.find_backlog(store.other, ["*"]) == none
    applied = "update git_event set processed = now() where tenant = %s returning 1"
    admin_rows(store.admin_url, applied, store.me.tenant)
    assert await changes.find_backlog(store.me, ["*"]) == none


OLDEST = "select min(updated) from memory where tenant = %s and scope = %s"


def _reader(store: Store, *scopes: str) -> Principal:
    return principal(store.me.tenant, "one", reads=scopes)


async def test_what_waits_is_counted_in_readable_scopes_up_to_the_limit(
    shared_store: Store,
) -> None:
    store = shared_store
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
