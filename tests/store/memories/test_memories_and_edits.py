"""Writing, reading and editing memories in the store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.domain.core.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    PreconditionFailed,
)
from reverie.domain.core.ids import new_id, short_id
from reverie.domain.core.kinds import EdgeKind, Kind, Tier
from reverie.domain.core.memory import MemoryStatus, WriteOutcome, WriteResult
from reverie.store.memories.edits import EditStore
from reverie.store.memories.memories import ListFilter, build_events
from tests.store.memories.memory_access import HOME, SHOP, MemoryAccess, edge, worded
from tests.support.store_setup import Store, admin_rows, new

NEW_YEAR, JULY = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)


@pytest.fixture
def access(shared_store: Store) -> MemoryAccess:
    store, edits = shared_store, EditStore(shared_store.db)
    return MemoryAccess(store.memories, edits, store.me, store.other, store.admin_url)


def written(found: object) -> WriteResult:
    assert isinstance(found, WriteResult), found
    return found


async def test_a_written_memory_is_read_back_completely(access: MemoryAccess) -> None:
    said: dict[str, Any] = {
        "scope": SHOP, "key": "deploy", "summary": "how", "tags": ("ops", "ci"), "pinned": True,
        "confidence": 0.7, "agent": "ann", "git": {"commit": "abc"},
        "metadata": {"a": [1, None, "x"]}, "session": new_id(), "turns": (new_id(),),
        "valid_from": NEW_YEAR, "valid_to": JULY,
    }  # fmt: skip
    item = new("deploy on Mondays", kind=Kind.CONVENTION, **said)
    answer = written((await access.write(item))[0])
    assert (answer.id, answer.outcome, answer.version) == (item.id, WriteOutcome.CREATED, 1)
    assert answer.event is not None
    found = await access.get(item.id)
    assert {name: getattr(found, name) for name in said} == said | {"tags": ("ci", "ops")}
    assert (found.content, found.content_hash) == (item.content, item.content_hash)
    assert found.source == item.source
    kept = (found.kind, found.tier, found.status)
    assert kept == (Kind.CONVENTION, Tier.HOT, MemoryStatus.ACTIVE)
    assert (found.version, found.enriched, found.staleness) == (1, False, 0.0)
    assert found.created_at == found.updated_at


async def test_another_tenant_finds_none_of_my_memories(access: MemoryAccess) -> None:
    cause = await access.add("a cause")
    mine = await access.add("an effect", edges=(edge(cause),))
    with pytest.raises(NotFound):
        await access.memories.get(access.other, mine)
    with pytest.raises(NotFound):
        await access.memories.resolve(access.other, short_id(mine))
    with pytest.raises(NotFound):
        await access.change(mine, who=access.other, pinned=True)
    with pytest.raises(NotFound):
        await access.memories.get_with_neighbours(access.other, mine)
    assert await access.list_ids(who=access.other) == []
    assert await access.edits.history(access.other, mine, 9, 9) == []
    assert await access.add("an effect", who=access.other) != mine


async def test_a_key_sees_what_its_grants_cover(access: MemoryAccess) -> None:
    hidden = await access.add("at home", scope=HOME)
    seen = await access.add("in the shop", scope=f"{SHOP}/topic/till", edges=(edge(hidden),))
    assert await access.list_ids(who=access.of_shop) == [seen]
    assert (await access.memories.get(access.of_shop, seen)).id == seen
    assert (await access.memories.get_with_neighbours(access.of_shop, seen))[1] == []
    for memory in (hidden, new_id()):
        with pytest.raises(NotFound) as caught:
            await access.memories.get(access.of_shop, memory)
        assert str(caught.value) == f"no memory {memory} that this key may read"


async def test_an_id_is_given_in_full_or_by_its_suffix(access: MemoryAccess) -> None:
    memory = await access.add("findable")
    for text in (str(memory), memory.hex, short_id(memory)):
        assert await access.memories.resolve(access.me, text) == memory
    with pytest.raises(NotFound):
        await access.memories.resolve(access.me, short_id(new_id()))
    with pytest.raises(InvalidInput, match="id: 'no id' is not an id"):
        await access.memories.resolve(access.me, "no id")


async def test_a_suffix_shared_by_two_ids_is_refused(access: MemoryAccess) -> None:
    for first in "12":
        await access.add(first, id=UUID(f"{first}0000000-0000-7000-8000-0000deadbeef"))
    with pytest.raises(InvalidInput, match="deadbeef means several memories"):
        await access.memories.resolve(access.me, "deadbeef")


async def test_a_repeated_memory_gains_confidence_and_missing_fields(access: MemoryAccess) -> None:
    cause, git = await access.add("cause"), {"branch": "main", "files": ["a.py"]}
    first = await access.add("tabs", tags=("b",), metadata={"a": 1}, git=git)
    again = new(
        "tabs",
        tags=("a",),
        metadata={"a": 2, "b": 3},
        summary="s",
        pinned=True,
        git={"branch": "x"},
        edges=(edge(cause, EdgeKind.CAUSED_BY),),
    )
    answer = written((await access.write(again))[0])
    assert answer == WriteResult(first, WriteOutcome.DUPLICATE, 2, None)
    assert build_events(access.me, answer, {}) == []
    found = await access.get(first)
    assert [(n.id, n.type) for n in await access.neighbours(first)] == [(cause, "led_to")]
    assert found.git == git
    assert (found.confidence, found.pinned, found.summary) == (0.85, True, "s")
    assert (found.tags, found.metadata) == (("a", "b"), {"a": 1, "b": 3})
    for _ in range(4):
        await access.write(new("tabs", summary="other"))
    found = await access.get(first)
    assert (found.confidence, found.pinned, found.summary) == (1.0, True, "s")
    assert await access.add("tabs", scope=SHOP) != first


async def test_adding_git_data_to_a_memory_is_a_version(access: MemoryAccess) -> None:
    first = await access.add("placed")
    enriched = "update memory set enriched_version = version where id = %s"
    admin_rows(access.admin_url, enriched, first)
    answer = written((await access.write(new("placed", git={"commit": "abc"}, agent="ann")))[0])
    assert (answer.outcome, answer.version) == (WriteOutcome.DUPLICATE, 2)
    assert answer.event is not None
    assert [event.id for event in build_events(access.me, answer, {})] == [answer.event]
    found = await access.get(first)
    assert (found.git, found.enriched) == ({"commit": "abc"}, False)
    newest, _ = await access.history(first)
    assert (newest.actor, newest.reason) == ("ann", "its place in git became known")


async def test_a_key_in_use_is_a_conflict_that_shows_the_current_memory(
    access: MemoryAccess,
) -> None:
    first = await access.add("port 80", scope=SHOP, key="port")
    refused, landed = await access.write(new("port 81", scope=SHOP, key="port"), new("else"))
    assert isinstance(refused, Conflict)
    assert str(refused) == (
        f"key 'port' is active in {SHOP}: give a supersede reason to replace it"
    )
    assert refused.current == {"id": str(first), "content": "port 80", "version": 1}
    assert await access.list_ids() == [written(landed).id, first]


async def test_a_reason_supersedes_the_memory_of_a_key(access: MemoryAccess) -> None:
    old = await access.add("port 80", key="port", pinned=True)
    item = new("port 81", key="port", supersede_reason="moved", agent="ann")
    answer = written((await access.write(item))[0])
    assert (answer.outcome, answer.version) == (WriteOutcome.SUPERSEDED, 1)
    before = await access.get(old)
    assert (before.status, before.version) == (MemoryStatus.SUPERSEDED, 2)
    assert (before.superseded_by, before.valid_to is None) == (item.id, False)
    assert not (await access.get(item.id)).pinned
    (near,) = await access.neighbours(item.id)
    assert (near.id, near.type, near.direction, near.label) == (old, "supersedes", "out", "port")
    newest, _ = await access.history(old)
    assert (newest.status, newest.actor, newest.reason) == ("superseded", "ann", "moved")


async def test_one_content_may_be_stored_under_several_keys(access: MemoryAccess) -> None:
    ids = [await access.add("the same", key=key) for key in (None, "a", "b")]
    assert await access.list_ids() == ids[::-1]


async def test_an_edge_can_only_lead_to_a_readable_memory(access: MemoryAccess) -> None:
    hidden = await access.add("at home", scope=HOME)
    theirs = await access.add("of another tenant", who=access.other)
    for to in (hidden, theirs, new_id()):
        refused, landed = await access.write(
            new("linked", scope=SHOP, edges=(edge(to),)),
            new(f"plain {to}", scope=SHOP),
            who=access.of_shop,
        )
        assert str(refused) == f"edges: there is no memory {to} to link to"
        assert written(landed).outcome is WriteOutcome.CREATED


async def test_no_effect_precedes_its_cause_and_no_edge_leads_to_itself(
    access: MemoryAccess,
) -> None:
    cause = await access.add("cause", key="c")
    effect = await access.add("effect", edges=(edge(cause, EdgeKind.PART_OF),))
    middle = await access.add("middle", edges=(edge(effect, EdgeKind.CAUSED_BY),))
    closing = new("cause", key="c", tags=("new",), edges=(edge(middle, EdgeKind.CAUSED_BY),))
    itself = new("cause", key="c", edges=(edge(cause),))
    refused, circular, landed = await access.write(closing, itself, new("plain"))
    assert str(refused) == "edges: an edge would close a causal cycle"
    assert str(circular) == "edges: an edge would lead from the memory to itself"
    assert await access.list_ids() == [written(landed).id, middle, effect, cause]
    unchanged = await access.get(cause)
    assert (unchanged.tags, unchanged.confidence) == ((), 0.8)


async def test_neighbours_are_seen_from_both_ends_strongest_first(access: MemoryAccess) -> None:
    weak, strong = await access.add("weak"), await access.add("strong", key="s")
    edges = (edge(weak, weight=0.25), edge(strong, EdgeKind.CAUSED_BY, 0.5))
    middle = await access.add("middle", edges=edges)
    seen = [(n.id, n.label, n.type, n.direction, n.weight) for n in await access.neighbours(middle)]
    assert seen == [(strong, "s", "led_to", "in", 0.5), (weak, "weak", "relates_to", "out", 0.25)]
    assert [(n.id, n.direction) for n in await access.neighbours(strong)] == [(middle, "out")]
    for weight in (0.75, 0.125):
        await access.write(new("middle", edges=(edge(weak, weight=weight),)))
    assert [n.weight for n in await access.neighbours(middle)] == [0.75, 0.5]
    assert len((await access.memories.get_with_neighbours(access.me, middle, limit=1))[1]) == 1


async def test_a_list_continues_after_the_last_item_and_can_be_filtered(
    access: MemoryAccess,
) -> None:
    session = new_id()
    plain = await access.add("plain")
    bug = await access.add("bug", kind=Kind.BUG, scope=SHOP, tags=("x",), session=session)
    node = await access.add("src/till.py", kind=Kind.FILE, scope=SHOP)
    last = await access.add("last", scope=SHOP, key="end")
    assert await access.list_ids() == [last, bug, plain]
    below = await access.memories.page(access.me, last, 1, ListFilter())
    assert [memory.id for memory in below] == [bug]
    for only, ids in (
        (ListFilter(scope=SHOP), [last, bug]),
        (ListFilter(kinds=["bug", "file"]), [node, bug]),
        (ListFilter(tag="x"), [bug]),
        (ListFilter(session=session), [bug]),
        (ListFilter(key="end"), [last]),
        (ListFilter(status=["archived"]), []),
    ):
        assert await access.list_ids(only) == ids, only


async def test_a_change_is_a_version_with_author_and_reason(access: MemoryAccess) -> None:
    memory = await access.add("frist", agent="ann", tags=("a",))
    bob = replace(access.me, agent="bob")
    changed = await access.change(memory, who=bob, expected=1, tags=["b", "c"], **worded("first"))
    assert changed.version == 2
    assert [event.subject for event in changed.events] == [
        "memory.one.edited",
        "memory.one.remembered",
    ]
    await access.change(memory, kind="lesson", confidence=0.5, valid_from=JULY.isoformat())
    found = await access.get(memory)
    assert (found.content, found.tags, found.kind) == ("first", ("b", "c"), Kind.LESSON)
    assert (found.confidence, found.valid_from, found.version) == (0.5, JULY, 3)
    history = await access.history(memory)
    assert [(v.version, v.content, v.kind, v.tags, v.actor, v.reason) for v in history] == [
        (3, "first", "lesson", ["b", "c"], "key key", "on purpose"),
        (2, "first", "context", ["b", "c"], "bob", "on purpose"),
        (1, "frist", "context", ["a"], "ann", "remembered"),
    ]
    assert history[0].known_to is None
    assert [v.known_to for v in history[1:]] == [v.known_from for v in history[:-1]]
    assert [v.version for v in await access.history(memory, below=3, limit=1)] == [2]


async def test_an_edit_that_changes_nothing_is_no_version(access: MemoryAccess) -> None:
    memory = await access.add("as it is", tags=("a", "b"))
    changed = await access.change(memory, tags=["b", "a"], pinned=False, **worded("as it is"))
    assert (changed.version, changed.events) == (1, [])
    pinned = await access.change(memory, event="pinned", pinned=True)
    assert [event.subject for event in pinned.events] == ["memory.one.pinned"]
    assert pinned.version == 2


async def test_every_version_has_its_events_and_a_refusal_none(access: MemoryAccess) -> None:
    old = await access.add("port 80", key="port")
    await access.write(new("port 80", key="port"), new("port 81", key="port"))
    last = await access.add("port 81", key="port", supersede_reason="moved")
    await access.change(last, **worded("port 82"))
    with pytest.raises(PreconditionFailed):
        await access.change(last, expected=1, pinned=True)
    await access.forget(last)
    assert access.events() == sorted(
        [
            ("memory.one.remembered", str(old), 1),
            ("memory.one.edited", str(old), 2),
            ("memory.one.superseded", str(old), 3),
            ("memory.one.remembered", str(last), 1),
            ("memory.one.remembered", str(last), 2),
            ("memory.one.edited", str(last), 2),
            ("memory.one.forgotten", str(last), 3),
        ]
    )


async def test_only_writers_of_its_scope_can_change_a_memory(access: MemoryAccess) -> None:
    memory, node = await access.add("at home", scope=HOME), await access.add("f", kind=Kind.FILE)
    for who in (replace(access.me, role=KeyRole.READER), replace(access.me, writes=(SHOP,))):
        with pytest.raises(Forbidden, match=f"this key may not write scope {HOME}"):
            await access.change(memory, who=who, pinned=True)
    with pytest.raises(NotFound):
        await access.change(memory, who=access.of_shop, pinned=True)
    with pytest.raises(InvalidInput, match="file and entity nodes are made"):
        await access.change(node, pinned=True)


async def test_a_forgotten_memory_has_no_neighbours(access: MemoryAccess) -> None:
    cause = await access.add("cause")
    middle = await access.add("middle", edges=(edge(cause, EdgeKind.CAUSED_BY),))
    effect = await access.add("effect", edges=(edge(middle, EdgeKind.CAUSED_BY),))
    await access.forget(middle)
    (turned,) = await access.write(new("cause", edges=(edge(effect, EdgeKind.CAUSED_BY),)))
    assert written(turned).id == cause
