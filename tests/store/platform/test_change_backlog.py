"""Git changes that wait to be applied are counted for who may read their project."""

from __future__ import annotations

from reverie.contracts.memories.git import GitChange
from reverie.store.staleness.git_changes import ChangeBacklog, GitChangeStore
from tests.support.store_setup import Store, admin_rows

RECEIVED = "select min(received) from git_event where tenant = %s and project = 'harbour'"


async def test_changes_that_wait_are_counted_by_readable_project(store: Store) -> None:
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
