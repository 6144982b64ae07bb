"""Property tests: one active memory per key, and exact rollbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.domain.core.errors import Conflict
from reverie.domain.core.ids import new_id
from reverie.domain.core.memory import hash_content
from reverie.domain.text.index_terms import index_text
from reverie.store.memories.edits import EditStore, MemoryChange
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import Store, admin_rows, new, open_store, write

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40)
CONTENT = TEXT.filter(lambda text: bool(text.strip()))
TAGS = st.lists(CONTENT, max_size=3, unique=True)
SAVES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.booleans()), min_size=2, max_size=12
)
FEW = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ACTIVE = """
select count(*) from memory where status = 'active' and key is not null
group by scope, key having count(*) > 1
"""
EMPTIED = "truncate memory, edge, memory_version, posting_entry, tenant cascade"
CHAINS = """
select count(*) from memory m
where m.status = 'superseded' and not exists (
  select from edge e where e.tenant = m.tenant and e.dst = m.id and e.kind = 'supersedes'
    and e.known_to is null and e.src = m.superseded_by)
"""


@FEW
@given(saves=SAVES)
def test_one_memory_is_active_under_a_key_however_many_writers_race(
    database: DatabaseUrls, saves: Sequence[tuple[str, int, bool]]
) -> None:
    asyncio.run(_save_all(database, saves))
    assert admin_rows(database.admin_url, ACTIVE) == []
    assert admin_rows(database.admin_url, CHAINS) == [(0,)]


async def _save_all(database: DatabaseUrls, saves: Sequence[tuple[str, int, bool]]) -> None:
    admin_rows(database.admin_url, EMPTIED)
    async with open_store(database, size=6) as store:
        await asyncio.gather(*(_save(store, *save) for save in saves))


async def _save(store: Store, key: str, number: int, reasoned: bool) -> None:
    item = new(f"text {number}", key=key, supersede_reason="newer" if reasoned else None)
    [found] = await store.memories.remember(store.me, [item], {})
    assert reasoned is False or not isinstance(found, Conflict)


@FEW
@given(first=st.tuples(CONTENT, TAGS), edits=st.lists(st.tuples(CONTENT, TAGS), max_size=4))
def test_a_rollback_restores_any_version(
    database: DatabaseUrls,
    first: tuple[str, list[str]],
    edits: Sequence[tuple[str, list[str]]],
) -> None:
    asyncio.run(_edit_and_return(database, first, edits))


async def _edit_and_return(
    database: DatabaseUrls,
    first: tuple[str, list[str]],
    edits: Sequence[tuple[str, list[str]]],
) -> None:
    admin_rows(database.admin_url, EMPTIED)
    async with open_store(database, size=2) as store:
        changes = EditStore(store.db)
        content, tags = first
        item = replace(new(content), id=new_id(), tags=tuple(tags))
        [one] = await write(store, item)
        at_first = await _state(store, one)
        for content, tags in edits:
            await changes.change(
                store.me, one, MemoryChange(_fields(content, tags), "edit", "edited"), {}
            )
        if (await store.memories.get(store.me, one)).version > 1:
            kept, state = await changes.version(store.me, one, 1)
            fields = _fields(kept, state["tags"])
            await changes.change(store.me, one, MemoryChange(fields, "back", "edited"), {})
        assert await _state(store, one) == at_first


def _fields(content: str, tags: Sequence[str]) -> dict[str, object]:
    return {
        "content": content,
        "hash": "\\x" + hash_content(content),
        "index_text": index_text(content),
        "tags": list(tags),
    }


async def _state(store: Store, one: UUID) -> object:
    """What is to come back: content, hash, tags, and the words in the index."""
    memory = await store.memories.get(store.me, one)
    postings = admin_rows(
        store.admin_url,
        "select p.term, p.tf from posting p join memory m using (doc) where m.id = %s order by 1",
        one,
    )
    return memory.content, memory.content_hash, sorted(memory.tags), postings
